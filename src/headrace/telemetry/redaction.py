"""What must not be seen, taken out once, before any sink: log lines, spans, the terminal, later the API.

Nothing that is stored to be executed passes through here. Pure: no clock, no input or output.
"""

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from enum import Enum
from typing import Any, cast

from headrace.core.errors import SettingsError
from headrace.telemetry.secret_names import is_secret
from headrace.telemetry.secret_texts import without_secrets

REDACTED = "[redacted]"
FAILED = "[redaction failed]"
DEEPEST = 50
_LONGEST_JSON = 1_000_000  # a longer text is searched as text

type Hook = Callable[[str, Any], Any]
"""`hook(name, value)`, called with every text, number, flag and None that is left, and the name of its field ("" where
it has none). It gives the value back, or what is to be seen in its place. It is called often, from any thread; when it
raises, `[redaction failed]` is seen."""


class Redaction:
    """The rules of one app: the built-in ones, more words, names that are shown all the same, and hooks."""

    __slots__ = ("_hooks", "_more", "_shown")

    def __init__(self, rules: Iterable[str | Hook] = ()) -> None:
        """A text is one more word ("iban"), or with a minus a whole name that is shown ("-max_tokens"); what can be
        called is a hook."""
        self._more: set[str] = set()
        self._shown: set[str] = set()
        self._hooks: list[Hook] = []
        for rule in rules:
            self.add(rule)

    def add(self, rule: str | Hook) -> None:
        if callable(rule):
            self._hooks.append(rule)
        elif not isinstance(rule, str) or not rule.strip("- "):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SettingsError(f"redact takes words, names with a minus before them, and functions, not {rule!r}")
        elif rule.startswith("-"):
            self._shown.add(rule[1:].strip().lower())
        else:
            self._more.add(rule.strip().lower())

    def is_secret(self, name: str, *, of_number: bool = False) -> bool:
        return is_secret(name, more=self._more, shown=self._shown, of_number=of_number)

    def value(self, value: Any, name: str = "") -> Any:
        """The same, as plain data: mappings, lists, texts, numbers. Objects of other kinds become their text."""
        try:
            return self._value(value, name, 0)
        except Exception:  # a hostile __str__, a mapping that raises: what cannot be read must not be shown
            return FAILED

    def text(self, text: str, name: str = "") -> str:
        """A text with its secrets taken out; the very same object where there is nothing to take out."""
        found = self.value(text, name)
        return found if isinstance(found, str) else str(found)

    def _value(self, value: Any, name: str, depth: int) -> Any:
        if value is None or isinstance(value, bool):
            return self._by_hooks(name, value)
        if name and self.is_secret(name, of_number=isinstance(value, int | float)):
            return REDACTED
        if depth > DEEPEST:
            return FAILED
        match value:
            case str() if not isinstance(value, Enum):
                return self._by_hooks(name, self._text(value, depth))
            case int() | float():
                return self._by_hooks(name, value)
            case Mapping():
                found = cast("Mapping[Any, Any]", value)
                return {
                    key if isinstance(key, str) else str(key): self._value(item, str(key), depth + 1)
                    for key, item in found.items()
                }
            case Sequence() if not isinstance(value, bytes | bytearray | memoryview):
                return self._items(cast("Sequence[Any]", value), name, depth)
            case Set():
                return [self._value(item, name, depth + 1) for item in cast("Set[Any]", value)]
            case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
                return {
                    field.name: self._value(getattr(value, field.name), field.name, depth + 1)
                    for field in dataclasses.fields(value)
                }
            case Enum():
                return self._value(value.value, name, depth + 1)
            case _:
                return self._by_hooks(name, self._text(str(value), depth))

    def _items(self, items: Sequence[Any], name: str, depth: int) -> list[Any]:
        """What follows `--password` in a list of words is its value."""
        found: list[Any] = []
        flagged = False
        for item in items:
            found.append(REDACTED if flagged and isinstance(item, str) else self._value(item, name, depth + 1))
            flagged = isinstance(item, str) and item[:1] == "-" and "=" not in item and self.is_secret(item)
        return found

    def _text(self, text: str, depth: int) -> str:
        if text[:1] in ("{", "[") and text[-1:] in ("}", "]") and len(text) <= _LONGEST_JSON:
            try:
                data: Any = json.loads(text)
            except (ValueError, RecursionError):
                pass
            else:
                found = self._value(data, "", depth + 1)
                return text if found == data else json.dumps(found, ensure_ascii=False, separators=(",", ":"))
        return without_secrets(text, is_secret=self.is_secret, mark=REDACTED)

    def _by_hooks(self, name: str, value: Any) -> Any:
        for hook in self._hooks:
            try:
                value = hook(name, value)
            except Exception:
                return FAILED
        return value


DEFAULT = Redaction()
