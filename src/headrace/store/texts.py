"""Text that no database stores: a NUL character, or half of a surrogate pair."""


def is_storable(text: str | None) -> bool:
    if text is None:
        return True
    if "\0" in text:
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def mended(text: str) -> str:
    """The same text with a mark in place of what cannot be stored."""
    if is_storable(text):
        return text
    return text.encode(errors="replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
