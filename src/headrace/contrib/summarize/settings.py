"""Where the service is and how much of a text goes into one call. The key is not among the settings: a worker reads it
from the environment when it calls."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from headrace import Permanent, errors

DEFAULT_BASE_URL = "https://openrouter.ai/api/v1"
DEFAULT_MODEL = "meta-llama/llama-3.2-90b-text-preview"


@dataclass(frozen=True, slots=True, kw_only=True)
class SummarizeSettings:
    """`timeout` is how long the service may say nothing new, in seconds. Tokens are estimated, on the safe side."""

    base_url: str = DEFAULT_BASE_URL
    model: str = DEFAULT_MODEL
    timeout: float = 30.0
    key_variable: str = "OPENROUTER_API_KEY"  # the name of the variable, never the key
    chunk_tokens: int = 6000  # of the text in one call
    summary_tokens: int = 600  # of one answer
    most_chunks: int = 100  # a longer text is refused

    def __post_init__(self) -> None:
        place = urlsplit(self.base_url)
        if place.scheme not in ("http", "https") or not place.hostname:
            raise errors.SettingsError(
                "the base URL of the chat service (OPENROUTER_BASE_URL) is not an address like https://host/api/v1"
            )
        if place.username or place.password:
            raise errors.SettingsError(
                "the base URL of the chat service (OPENROUTER_BASE_URL) has a password in it, which would be shown; "
                f"put the key into {self.key_variable}"
            )
        if not self.model.strip():
            raise errors.SettingsError("the chat service needs a model (OPENROUTER_MODEL)")
        if not (math.isfinite(self.timeout) and self.timeout > 0):
            raise errors.SettingsError(
                f"the time limit of a call (OPENROUTER_TIMEOUT) must be above 0, not {self.timeout!r}"
            )
        if self.chunk_tokens < 2 * self.summary_tokens or self.summary_tokens < 1 or self.most_chunks < 1:
            raise errors.SettingsError(
                f"chunk_tokens ({self.chunk_tokens}) must be at least twice summary_tokens ({self.summary_tokens}): "
                "summaries of parts would never become shorter than one part"
            )

    @property
    def endpoint(self) -> str:
        return f"{self.base_url.rstrip('/')}/chat/completions"

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> "SummarizeSettings":
        """OPENROUTER_BASE_URL, OPENROUTER_MODEL and OPENROUTER_TIMEOUT, each with its default."""
        environ = os.environ if environ is None else environ
        text = environ.get("OPENROUTER_TIMEOUT", "").strip()
        try:
            timeout = float(text) if text else 30.0
        except ValueError:
            raise errors.SettingsError(f"OPENROUTER_TIMEOUT={text!r} is not a number of seconds") from None
        return cls(
            base_url=environ.get("OPENROUTER_BASE_URL", "").strip() or DEFAULT_BASE_URL,
            model=environ.get("OPENROUTER_MODEL", "").strip() or DEFAULT_MODEL,
            timeout=timeout,
        )

    def read_key(self, environ: Mapping[str, str] | None = None) -> str:
        """The key, from the environment of this process. Permanent when there is none that could be sent."""
        key = (os.environ if environ is None else environ).get(self.key_variable, "").strip()
        if not key:
            raise Permanent(
                f"no API key: set {self.key_variable} in the environment of the worker, and then retry this task"
            )
        if not key.isascii() or not key.isprintable() or " " in key:
            # Libraries for HTTP quote a value that they cannot send.
            raise Permanent(f"{self.key_variable} holds something that cannot be a key; it is not shown here")
        return key
