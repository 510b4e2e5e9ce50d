"""One call of a chat service that speaks the protocol of OpenAI, streamed.

It tries once. What fails is for the task's retry policy to repeat: a call that slept and repeated by itself would hold
a slot for minutes, and multiply with the attempts of the task.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, NoReturn, cast

import httpx

from headrace.contrib.summarize.errors import BrokenAnswer, NetworkTimeout, ServiceRefused, error_of_status
from headrace.contrib.summarize.events import EventReader, TooLong
from headrace.contrib.summarize.settings import SummarizeSettings

_LARGEST_ANSWER = 4 * 1024 * 1024  # bytes, with everything around the text
_SHOWN = 300  # characters of what the service says about an error


class ChatService:
    """`async with ChatService(settings, key) as service:`, for any number of calls."""

    def __init__(self, settings: SummarizeSettings, key: str) -> None:
        self._settings = settings
        self._key = key
        self._client = httpx.AsyncClient(timeout=httpx.Timeout(settings.timeout), follow_redirects=False)

    async def __aenter__(self) -> "ChatService":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def ask(self, messages: list[dict[str, str]], *, on_text: Callable[[str], None]) -> str:
        """The whole answer; `on_text` is called with each piece as it comes."""
        limit = self._settings.timeout
        pieces: list[str] = []
        held = ""
        try:
            async with asyncio.timeout(limit) as patience:
                async with aclosing(self._pieces(messages)) as answer:
                    async for piece in answer:
                        # Comments that keep a connection alive are no answer: only text renews the patience.
                        if piece:
                            patience.reschedule(asyncio.get_running_loop().time() + limit)
                            pieces.append(piece)
                            said, held = self._sayable(held + piece)
                            if said:
                                on_text(said)
        except (TimeoutError, httpx.TimeoutException) as error:
            if isinstance(error, NetworkTimeout):
                raise
            raise NetworkTimeout(f"{self._who} said nothing for {limit:g} s") from None
        except (httpx.TransportError, httpx.DecodingError, httpx.StreamError) as error:
            # Its own message and its causes are left behind: they may quote what was sent.
            raise BrokenAnswer(f"the connection to {self._who} broke ({type(error).__name__})") from None
        text = self._without_key("".join(pieces)).strip()
        if not text:
            raise BrokenAnswer(f"{self._who} gave an answer without text")
        if held:
            on_text(held)
        return text

    async def _pieces(self, messages: list[dict[str, str]]) -> AsyncGenerator[str]:
        settings = self._settings
        body = {
            "model": settings.model,
            "messages": messages,
            "stream": True,
            "max_tokens": settings.summary_tokens,
        }
        headers = {"Authorization": f"Bearer {self._key}", "Accept": "text/event-stream"}
        async with self._client.stream("POST", settings.endpoint, json=body, headers=headers) as response:
            if response.status_code != 200:
                await self._refuse(response)
            if "text/event-stream" not in response.headers.get("content-type", "text/event-stream"):
                # Some servers do not stream, whatever they are asked.
                yield self._text_of(await _bounded(response), part="message")
                return
            reader, complete = EventReader(limit=_LARGEST_ANSWER), False
            async for data in response.aiter_bytes():
                for event in self._events(reader, data):
                    if event.strip() == "[DONE]":
                        return
                    chunk = self._parsed(event)
                    yield self._text_of(chunk, part="delta")
                    complete = complete or _finished(chunk)
            if not complete:
                raise BrokenAnswer(f"the answer of {self._who} ended in the middle")

    def _events(self, reader: EventReader, data: bytes) -> list[str]:
        try:
            return reader.feed(data)
        except TooLong:
            raise BrokenAnswer(f"{self._who} sent more than {_LARGEST_ANSWER} bytes for one answer") from None

    def _parsed(self, text: str | bytes) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise BrokenAnswer(f"{self._who} sent something that is not JSON") from None

    def _text_of(self, chunk: Any, *, part: str) -> str:
        """What one event (or a whole answer) says; raises what it reports."""
        if isinstance(chunk, bytes):
            chunk = self._parsed(chunk)
        if not isinstance(chunk, dict):
            raise BrokenAnswer(f"{self._who} sent {type(chunk).__name__} in place of an object")
        found = cast("dict[str, Any]", chunk)
        if found.get("error"):
            self._report(found["error"])
        choices = found.get("choices")
        if choices == []:
            return ""  # usage figures come so, at the end
        try:
            choice = cast("list[dict[str, Any]]", choices)[0]
            said: dict[str, Any] = choice.get(part) or {}
            text = said.get("content")
        except (TypeError, LookupError, AttributeError):
            raise BrokenAnswer(f"{self._who} sent an answer without choices") from None
        if choice.get("finish_reason") == "content_filter" and not text:
            raise ServiceRefused(f"{self._who} refuses to answer about this text (content_filter)")
        return text if isinstance(text, str) else ""

    def _report(self, error: Any) -> NoReturn:
        """An error that came after the status 200, in the stream."""
        said = cast("dict[str, Any]", error) if isinstance(error, dict) else {"message": str(error)}
        code, message = said.get("code"), self._shown(said.get("message"))
        if isinstance(code, int) and not isinstance(code, bool) and 400 <= code <= 599:
            raise error_of_status(code, f"{self._who} broke off with {code}{message}")
        raise BrokenAnswer(f"{self._who} broke off{message}")

    async def _refuse(self, response: httpx.Response) -> NoReturn:
        status = response.status_code
        try:
            data = await _bounded(response)
        except (TimeoutError, httpx.HTTPError, httpx.StreamError):
            data = b""  # the status says enough
        try:
            said: Any = json.loads(data)["error"]
            said = cast("dict[str, Any]", said).get("message") if isinstance(said, dict) else said
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            said = data.decode("utf-8", "replace")
        hint = f": is {self._settings.key_variable} right?" if status in (401, 403) else ""
        message = f"{self._who} answered {status}{self._shown(said)}{hint}"
        raise error_of_status(status, message, headers=_told(response))

    @property
    def _who(self) -> str:
        return f"the chat service at {httpx.URL(self._settings.base_url).host}"

    def _shown(self, said: Any) -> str:
        text = " ".join(self._without_key(str(said)).split()) if said else ""
        return f" ({text[:_SHOWN]})" if text else ""

    def _without_key(self, text: str) -> str:
        """A service may quote the key that it was given."""
        return text.replace(self._key, "***")

    def _sayable(self, text: str) -> tuple[str, str]:
        """What can be shown now, and the end of it that may be the beginning of the key."""
        text = self._without_key(text)
        most = min(len(self._key) - 1, len(text))
        kept = next((n for n in range(most, 0, -1) if text.endswith(self._key[:n])), 0)
        return text[: len(text) - kept], text[len(text) - kept :]

    def __repr__(self) -> str:
        return f"<ChatService {self._settings.model}>"


def _finished(chunk: Any) -> bool:
    choices: Any = chunk.get("choices") or [{}]
    return bool(choices[0].get("finish_reason"))


async def _bounded(response: httpx.Response) -> bytes:
    data = b""
    async for part in response.aiter_bytes():
        data += part
        if len(data) > _LARGEST_ANSWER:
            raise BrokenAnswer(f"more than {_LARGEST_ANSWER} bytes came for one answer")
    return data


def _told(response: httpx.Response) -> dict[str, str]:
    """What the classification reads of the headers: Retry-After in either form, and the clock that a date goes by."""
    return {name: response.headers[name] for name in ("retry-after", "date") if name in response.headers}
