"""What a token looks like (client.accounts makes them), and the CSRF token that belongs to a session's."""

import hashlib
import hmac

from headrace.client.accounts import PREFIX

_LENGTH = len(PREFIX) + 43
_SESSION_LABEL = b"headrace csrf"


def looks_like_one(text: str) -> bool:
    """Spares the ledger what cannot be there."""
    return len(text) == _LENGTH and text.startswith(PREFIX) and text.isascii()


def csrf_of(session: str) -> str:
    """Known to whoever has the cookie, and to the page that was told; the same on every server."""
    return hmac.new(session.encode(), _SESSION_LABEL, hashlib.sha256).hexdigest()


def is_csrf_of(session: str, given: str) -> bool:
    return hmac.compare_digest(csrf_of(session).encode(), given.encode())
