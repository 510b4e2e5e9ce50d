"""What must not be seen, taken out once, before any sink: log lines, spans, the terminal, later the API.

Nothing that is stored to be executed passes through here. Pure: no clock, no input or output.
"""

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from enum import Enum
from typing import Any, cast

from headrace.core.errors import SettingsError
from headrace.telemetry.secret_names import is_secret, names_a_field
from headrace.telemetry.secret_texts import without_secrets

REDACTED = "[redacted]"
FAILED = "[redaction failed]"
DEEPEST = 50
_LONGEST_JSON = 1_000_000  # a longer text is searched as text
_MOST_STEPS = 100_000  # mappings, lists and objects of one value
_NAME = re.compile(r"[\w.-]{1,200}")

type Hook = Callable[[str, Any], Any]
"""`hook(name, value)`, called with every text, number, flag and None that is left, and the name of its field ("" where
it has none). It gives the value back, or what is to be seen in its place. It is called often, from any thread; when it
raises, `[redaction failed]` is seen."""


class _Walk:
    """Through one value. What holds itself is left out where it comes again; what holds the same thing in many ways
    ends with the steps."""

    __slots__ = ("_inside", "_steps")

    def __init__(self) -> None:
        self._inside: set[int] = set()
        self._steps = _MOST_STEPS

    def enter(self, value: object) -> bool:
        self._steps -= 1
        if self._steps < 0 or len(self._inside) > DEEPEST or id(value) in self._inside:
            return False
        self._inside.add(id(value))
        return True

    def leave(self, value: object) -> None:
        self._inside.discard(id(value))


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
            return self._value(value, name, _Walk())
        except Exception:  # a hostile __str__, a mapping that raises: what cannot be read must not be shown
            return FAILED

    def text(self, text: str, name: str = "") -> str:
        """A text with its secrets taken out; the very same object where there is nothing to take out."""
        found = self.value(text, name)
        return found if isinstance(found, str) else str(found)

    def _value(self, value: Any, name: str, walk: _Walk) -> Any:
        if value is None or isinstance(value, bool):
            return self._by_hooks(name, value)
        if name and self.is_secret(name, of_number=isinstance(value, int | float)):
            return REDACTED
        match value:
            case str() if not isinstance(value, Enum):
                return self._by_hooks(name, self._text(value, walk))
            case int() | float():
                return self._by_hooks(name, value)
            case _ if not walk.enter(value):
                return FAILED
            case _:
                try:
                    return self._inside(value, name, walk)
                finally:
                    walk.leave(value)

    def _inside(self, value: Any, name: str, walk: _Walk) -> Any:
        match value:
            case Mapping():
                found = cast("Mapping[Any, Any]", value)
                return {
                    key if isinstance(key, str) else str(key): self._value(item, str(key), walk)
                    for key, item in found.items()
                }
            case Sequence() if not isinstance(value, bytes | bytearray | memoryview):
                return self._items(cast("Sequence[Any]", value), name, walk)
            case Set():
                return [self._value(item, name, walk) for item in cast("Set[Any]", value)]
            case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
                return {
                    field.name: self._value(getattr(value, field.name), field.name, walk)
                    for field in dataclasses.fields(value)
                }
            case Enum():
                return self._value(value.value, name, walk)
            case _:
                return self._by_hooks(name, self._text(str(value), walk))

    def _items(self, items: Sequence[Any], name: str, walk: _Walk) -> list[Any]:
        """What follows `--password` in a list of words is its value, and so is the second of `("x-api-key", "…")`, but
        not of `("password", "email")`: those are two fields."""
        found: list[Any] = []
        flagged = False
        pair = len(items) == 2 and not (isinstance(items[1], str) and names_a_field(items[1]))
        for item in items:
            found.append(REDACTED if flagged and isinstance(item, str | bytes) else self._value(item, name, walk))
            flagged = self._names_the_next(item, pair=pair)
        return found

    def _names_the_next(self, item: Any, *, pair: bool) -> bool:
        if pair and isinstance(item, bytes):
            item = item.decode("latin-1")
        if not isinstance(item, str) or not (pair or item[:1] == "-"):
            return False
        return _NAME.fullmatch(item) is not None and self.is_secret(item)

    def _text(self, text: str, walk: _Walk) -> str:
        if text[:1] in ("{", "[") and text[-1:] in ("}", "]") and len(text) <= _LONGEST_JSON:
            try:
                data: Any = json.loads(text)
            except (ValueError, RecursionError):
                pass
            else:
                found = self._value(data, "", walk)
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
