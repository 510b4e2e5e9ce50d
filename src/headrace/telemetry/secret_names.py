"""Which names belong to secrets.

A name is cut into parts at everything that is no letter or digit, and where a small letter meets a capital one
(`api_key`, `authToken`, `X-Api-Key`, `DB_PASSWORD`). It is secret when one of its parts is: one of the words below, or
a word that ends with one of the endings (`dbpassword`, `accesstoken`), whatever form it is said to have
(`passwordhash`), or two parts that make one of the words (`session_id`). So `keyboard`, `monkey`, `author` and
`tokenizer` are not: `key`, `auth` and `token` are whole parts in none of them. `primary_key` is: a default that hides
too much can be opened, one that hides too little has been read already.
"""

import re
from collections.abc import Collection
from functools import lru_cache
from itertools import pairwise

WORDS = frozenset({
    "password", "passwd", "passphrase", "passcode", "pass", "pwd", "pw", "secret", "token", "key", "auth",
    "authorization", "authentication", "oauth", "credential", "cred", "cookie", "bearer", "jwt", "apikey",
    "accesskey", "secretkey", "privatekey", "sshkey", "signingkey", "encryptionkey", "csrf", "xsrf", "otp",
    "totp", "pin", "cvv", "cvc", "sessionid",
})  # fmt: skip
ENDINGS = ("password", "passwd", "passphrase", "secret", "token", "apikey", "credential", "cookie")

_PASS = ("pass", "pw", "pwd")  # no endings: `compass`, `bypass`
_WHOSE = frozenset({
    "db", "sql", "mysql", "pg", "redis", "ldap", "smtp", "mail", "ftp", "ssh", "http", "proxy", "wifi", "user", "login",
    "admin", "root", "my", "app", "api", "key", "store",
})  # fmt: skip
_KEYS = frozenset({"authkey", "aeskey", "rsakey", "hmackey", "masterkey", "accountkey"})
# What a list of fields has beside `password`; nobody's secret.
_FIELDS = frozenset({
    "email", "mail", "name", "user", "username", "login", "id", "uid", "at", "on", "date", "time", "created", "updated",
    "expires", "phone", "address", "street", "city", "country", "zip", "url", "uri", "host", "hostname", "port", "role",
    "roles", "type", "kind", "state", "status", "age", "title", "label", "description", "count", "enabled", "active",
    "method", "scope", "scopes", "birthday", "language", "locale", "timezone", "company", "group", "groups",
})  # fmt: skip
_FIELD = re.compile(r"(?:[a-z]{1,20}_)?[a-z]{1,20}|[a-z]{1,20}[A-Z][a-z]{1,20}")
_FORMS = ("hash", "value", "string", "text")
_LONGEST_KEPT = 200  # the cache is for names, not for texts without a space

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+")


def parts_of(name: str) -> tuple[str, ...]:
    """`DB_password2` → `db`, `password`. Digits belong to no part."""
    return tuple(part.lower() for part in _PARTS.findall(name))


def is_secret(name: str, *, more: Collection[str] = (), shown: Collection[str] = (), of_number: bool = False) -> bool:
    """`more` are further words, `shown` whole names that are never secret, both in lower case. A plural counts as its
    singular, except `of_number`: under `max_tokens` that is a count.
    """
    if name.lower() in shown:
        return False
    if _kept(name, of_number) if len(name) <= _LONGEST_KEPT else _is_built_in(name, of_number):
        return True
    return bool(more) and any(
        part in more for part in (parts_of(name) if of_number else map(_singular, parts_of(name)))
    )


def names_a_field(text: str) -> bool:
    """Whether it is one more name beside a secret's, and no value: `email`, `created_at`, `password`."""
    if _FIELD.fullmatch(text) is None:
        return False
    *_, last = parts_of(text)
    return last in _FIELDS or text in WORDS


def _is_built_in(name: str, of_number: bool) -> bool:
    parts = parts_of(name)
    if any(_is_word(part) for part in (parts if of_number else map(_singular, parts))):
        return True
    return any(before + part in WORDS for before, part in pairwise(parts))


_kept = lru_cache(maxsize=4096)(_is_built_in)


def _is_word(part: str) -> bool:
    if part in WORDS or part.endswith(ENDINGS) or part in _KEYS:
        return True
    if part.endswith(_PASS):
        return any(part.removesuffix(end) in _WHOSE for end in _PASS)
    return part.endswith(_FORMS) and any(_is_word(part.removesuffix(form)) for form in _FORMS if part.endswith(form))


def _singular(part: str) -> str:
    return part[:-1] if part.endswith("s") and not part.endswith(("ss", "us")) and len(part) > 3 else part
