"""Which names belong to secrets.

A name is cut into parts at everything that is no letter or digit, and where a small letter meets a capital one
(`api_key`, `authToken`, `X-Api-Key`, `DB_PASSWORD`). It is secret when one of its parts is: one of the words below, or
a word that ends with one of the endings (`dbpassword`, `accesstoken`). So `keyboard`, `monkey`, `author` and
`tokenizer` are not: `key`, `auth` and `token` are whole parts in none of them. `primary_key` is: a default that hides
too much can be opened, one that hides too little has been read already.
"""

import re
from collections.abc import Collection
from functools import lru_cache

WORDS = frozenset({
    "password", "passwd", "passphrase", "passcode", "pass", "pwd", "pw", "secret", "token", "key", "auth",
    "authorization", "authentication", "oauth", "credential", "cred", "cookie", "bearer", "jwt", "apikey",
    "accesskey", "secretkey", "privatekey", "sshkey", "signingkey", "encryptionkey", "csrf", "xsrf", "otp",
    "totp", "pin", "cvv", "cvc", "sessionid",
})  # fmt: skip
ENDINGS = ("password", "passwd", "passphrase", "secret", "token", "apikey", "credential", "cookie")

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+")


@lru_cache(maxsize=4096)
def parts_of(name: str) -> tuple[str, ...]:
    """`DB_password2` → `db`, `password`. Digits belong to no part."""
    return tuple(part.lower() for part in _PARTS.findall(name))


def is_secret(name: str, *, more: Collection[str] = (), shown: Collection[str] = (), of_number: bool = False) -> bool:
    """`more` are further words, `shown` whole names that are never secret, both in lower case. A plural counts as its
    singular, except `of_number`: under `max_tokens` that is a count.
    """
    if name.lower() in shown:
        return False
    parts = parts_of(name) if of_number else map(_singular, parts_of(name))
    return any(part in WORDS or part.endswith(ENDINGS) or part in more for part in parts)


def _singular(part: str) -> str:
    return part[:-1] if part.endswith("s") and not part.endswith(("ss", "us")) and len(part) > 3 else part
