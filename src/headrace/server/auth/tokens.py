"""Secrets of tokens: what they look like, and the digest by which the ledger knows them."""

import hashlib
import hmac
import secrets

PREFIX = "hr_"
_LENGTH = len(PREFIX) + 43
_SESSION_LABEL = b"headrace csrf"


def new_secret() -> str:
    """256 random bits: nothing to guess, so a plain digest is enough."""
    return PREFIX + secrets.token_urlsafe(32)


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def hint_of(secret: str) -> str:
    return secret[:8]


def looks_like_one(text: str) -> bool:
    """Spares the ledger what cannot be there."""
    return len(text) == _LENGTH and text.startswith(PREFIX) and text.isascii()


def csrf_of(session: str) -> str:
    """Known to whoever has the cookie, and to the page that was told; the same on every server."""
    return hmac.new(session.encode(), _SESSION_LABEL, hashlib.sha256).hexdigest()


def is_csrf_of(session: str, given: str) -> bool:
    return hmac.compare_digest(csrf_of(session).encode(), given.encode())
