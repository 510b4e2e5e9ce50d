"""Server-sent events, from bytes as they come. Pure."""


class TooLong(Exception):
    """More bytes than any answer has."""


class EventReader:
    """Feed it bytes, and it gives the data of each event that is complete.

    Lines end at \\n, \\r\\n or \\r and nowhere else: str.splitlines would also cut JSON at U+2028 or U+0085, which may
    stand in it as they are.
    """

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._seen = 0
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, data: bytes) -> list[str]:
        self._seen += len(data)
        if self._seen > self._limit:
            raise TooLong
        found: list[str] = []
        buffer = self._rest + data
        # A \r at the very end may be half of a \r\n.
        held = b"\r" if buffer.endswith(b"\r") else b""
        *lines, rest = buffer.removesuffix(held).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = rest + held
        for line in lines:
            if not line:
                if self._data:
                    found.append(b"\n".join(self._data).decode("utf-8", "replace"))
                self._data = []
            elif line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
        return found
