"""The rules by themselves: names, nesting, texts, hooks."""

import dataclasses
import json
import time
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import App
from headrace.core.errors import SettingsError
from headrace.telemetry.redaction import FAILED, REDACTED, Redaction

RULES = Redaction()


@pytest.mark.requirement("D69")
@pytest.mark.parametrize(
    "name",
    ["password", "PASSWORD", "db_password", "userPasswd", "token", "authToken", "access-token", "accesstoken", "secret",
     "client.secret", "api_key", "apiKey", "APIKey", "X-Api-Key", "keys", "auth", "AUTH_HEADER", "Authorization",
     "credentials", "cookie", "Set-Cookie", "password2", "AWS_SECRET_ACCESS_KEY", "dbpassword", "privatekey", "pwd"],
)  # fmt: skip
def test_a_name_with_a_secret_part_hides_its_value(name: str) -> None:
    """D69: names like password, token, secret, key and auth, in every spelling."""
    assert RULES.value({name: "hunter2"}) == {name: REDACTED}
    assert RULES.value({name: {"deep": ["hunter2"]}}) == {name: REDACTED}
    for text in (f"{name}=hunter2", f"{name}: hunter2", f"a {name} = 'hunter2' b", f'{{"{name}": "hunter2"}}'):
        assert "hunter2" not in RULES.text(text), text


@pytest.mark.parametrize(
    "name", ["keyboard", "monkey", "author", "authority", "tokenizer", "secretary", "passenger", "compass", "bypass_it"]
)
def test_a_name_that_only_contains_such_a_word_is_shown(name: str) -> None:
    assert RULES.value({name: "hunter2"}) == {name: "hunter2"}
    assert RULES.text(f"{name}=hunter2") == f"{name}=hunter2"


@dataclasses.dataclass
class Login:
    user: str
    password: str


class Color(Enum):
    RED = "red"


@pytest.mark.requirement("D69")
def test_nested_values_of_every_kind() -> None:
    """D69, nested: mappings, lists, dataclasses, JSON in a text, a flag before its value."""
    found = RULES.value(
        {
            "list": [{"token": "hunter2"}, (1, {"a": {"secret": "hunter2"}})],
            "login": Login("me", "hunter2"),
            "json": json.dumps({"deep": [{"password": "hunter2", "n": 1}]}),
            "argv": ["psql", "--password", "hunter2", "-x"],
            "set": {"a"},
            "bytes": b"password=hunter2",
            "color": Color.RED,
            7: "seven",
        }
    )
    assert "hunter2" not in repr(found)
    assert found["list"] == [{"token": REDACTED}, [1, {"a": {"secret": REDACTED}}]]
    assert found["login"] == {"user": "me", "password": REDACTED}
    assert json.loads(found["json"]) == {"deep": [{"password": REDACTED, "n": 1}]}
    assert found["argv"] == ["psql", "--password", REDACTED, "-x"]
    assert (found["set"], found["color"], found["7"]) == (["a"], "red", "seven")


def test_what_cannot_be_a_secret_is_shown() -> None:
    plain = {"has_token": True, "token": None, "max_tokens": 4096, "n": 1.5, "text": "the token was wrong"}
    assert RULES.value(plain) == plain
    assert RULES.value({"pin": 1234}) == {"pin": REDACTED}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://me:hunter2@host/db", "postgresql://me:[redacted]@host/db"),
        ("at redis://:hunter2@host:6379/0 now", "at redis://:[redacted]@host:6379/0 now"),
        ("amqp://me:hun/ter2@@host/", "amqp://me:[redacted]@host/"),
        ("http://localhost:8000/users/@me", "http://localhost:8000/users/@me"),
        ("GET /x?token=hunter2&page=2", "GET /x?token=[redacted]&page=2"),
        ("Authorization: Bearer hunter2.hunter2", "Authorization: [redacted]"),
        ("sent Bearer hunter2hunter2 to it", "sent Bearer [redacted] to it"),
        ("Cookie: a=hunter2; b=hunter2\nnext: 1", "Cookie: [redacted]\nnext: 1"),
        ("{'auth': {'user': 'hunter2', 'pw': 'hunter2'}, 'b': 1}", "{'auth': [redacted], 'b': 1}"),
        ("Login(user='me', password='hun\\'ter2')", "Login(user='me', password='[redacted]')"),
        ("run --password hunter2 --api-key=hunter2 x", "run --password [redacted] --api-key=[redacted] x"),
        ("KeyError: 'color'", "KeyError: 'color'"),
        ("KeyError: password=hunter2", "KeyError: password=[redacted]"),
        ("api_key: None", "api_key: None"),
        ("task tasks.rotate_keys: soft_timeout (9 s) is", "task tasks.rotate_keys: soft_timeout (9 s) is"),
        ("worker auth-1:4711:1794821530 takes mail", "worker auth-1:4711:1794821530 takes mail"),
        ("password:12345", "password:[redacted]"),
        ('said "{\\"password\\": \\"hunter2\\"}"', 'said "{\\"password\\": \\"[redacted]\\"}"'),
        ("-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----", "[redacted]"),
        ("eyJhbGciOiJIUzI1.eyJzdWIiOiIx.hunter2", "[redacted]"),
        ("secret = b'hunter2'", "secret = b'[redacted]'"),
        ("password -> hunter2, user -> me", "password -> [redacted], user -> me"),
        ("set password->hunter2 now", "set password->[redacted] now"),
        ("token → hunter2", "token → [redacted]"),
        ("<a><password>hunter2</password><b>1</b></a>", "<a><password>[redacted]</password><b>1</b></a>"),
        ("<ns:Token type='x'>hunter2</ns:Token>", "<ns:Token type='x'>[redacted]</ns:Token>"),
        ("<secret><![CDATA[hun<ter2]]></secret>", "<secret>[redacted]</secret>"),
        ("<credentials><user>hunter2</user></credentials>!", "<credentials>[redacted]</credentials>!"),
        ("usage: get <key> <b>x</b>", "usage: get <key> <b>x</b>"),
        ("<keys>3</keys><token/><b>x</b>", "<keys>3</keys><token/><b>x</b>"),
        ("/x?next=%2Fy%3Ftoken%3Dhunter2%26page%3D2", "/x?next=%2Fy%3Ftoken%3D[redacted]%26page%3D2"),
        ("next=%252Fy%253Fkey%253Dhunter2%2526a%253D1", "next=%252Fy%253Fkey%253D[redacted]%2526a%253D1"),
        ("%7B%22password%22%3A%22hunter2%22%2C%22n%22%3A1", "%7B%22password%22%3A%22[redacted]%22%2C%22n%22%3A1"),
        ("password%3Dhunter2 sent", "password%3D[redacted] sent"),
        ("100%25 of keys%3A 3", "100%25 of keys%3A 3"),
    ],
)
def test_secrets_in_texts(text: str, shown: str) -> None:
    assert RULES.text(text) == shown


@pytest.mark.parametrize(
    "text",
    ["task password=hunter2", "https://hunter2@host/x", "redis://hunter2@host:6379", "2fa_token=hunter2",
     "über_token=hunter2", "d['password'] = 'hunter2'", "password == 'hunter2'", "password := hunter2",
     "password=u'hunter2'", "password=rb'hunter2'", "password=\"\"\"hunter2\"\"\"", "('x-api-key', 'hunter2')",
     "[(b'authorization', b'hunter2')]", '[["x-api-key","hunter2"]]', "session_id=hunter2", "dbpass=hunter2",
     "DBPASS=hunter2", "passwordhash=hunter2", "tokenvalue: hunter2", "password=ab,hunter2", "password=ab;hunter2",
     "password=true,hunter2", json.dumps("x\nkey=hunter2"), "bad: token-eyJhunter2xx.hunter2.hunter2",
     "redis://:a@one,redis://:hunter2@two", "amqp://one:5672,amqp://me:hunter2@two"],
)  # fmt: skip
def test_no_spelling_of_a_secret_shows(text: str) -> None:
    assert "hunter2" not in RULES.text(text)
    assert "hunter2" not in RULES.text(f"it said {text} and more")


@pytest.mark.parametrize(
    "secret",
    ["ghp_" + "a1B2" * 9, "gho_" + "a1B2" * 9, "github_pat_" + "11AB_" * 10, "glpat-" + "x1Y2" * 5, "sk-" + "aB3d" * 12,
     "sk-proj-" + "aB3-_" * 12, "sk-ant-api03-" + "x-Y_9" * 10, "sk-or-v1-" + "0f" * 32, "sk_live_" + "a1B2" * 6,
     "xoxb-" + "123456789012-" * 2 + "aBcD" * 6, "xapp-1-" + "A1B2" * 8, "AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE",
     "AIza" + "Sy_-" * 9, "npm_" + "a1B2" * 9, "pypi-" + "AgEI" * 9, "hf_" + "aBcD" * 8, "hr_" + "a1-B_" * 8],
)  # fmt: skip
def test_a_secret_is_known_by_its_beginning(secret: str) -> None:
    """Without a name beside it, wherever it stands."""
    for text in ("{}", "said {} to me", '"{}"', "({}),", "git clone {}@host", "a/{}/b"):
        assert RULES.text(text.format(secret)) == text.format(REDACTED), text
    assert RULES.value({"note": [secret]}) == {"note": [REDACTED]}


@pytest.mark.parametrize(
    "text",
    ["task-1234567890abcdefgh", "sk-learn-of-all-kinds-and-more", "risk-12345678901234567890", "ghp_short", "desk-lamp",
     "hr_department_of_the_company_here", "AKIAB", "AKIAIOSFODNN7EXAMPLEANDMORE", "xoxb-1", "npm_config_registry",
     "hf_hub_download"],
)  # fmt: skip
def test_what_only_begins_like_a_secret_is_shown(text: str) -> None:
    assert RULES.text(text) is text


def test_two_fields_are_no_name_with_its_value() -> None:
    for fields in (["password", "email"], ["token", "expires_at"], ["password", "userName"], ["token", "password"]):
        assert RULES.value({"fields": fields}) == {"fields": fields}
        assert RULES.text(repr(tuple(fields))) == repr(tuple(fields))
        assert RULES.text(json.dumps(fields)) == json.dumps(fields)
    for pair in (["password", "hunter2"], ["x-api-key", "abcdef"], ["password", "correct_horse_name"]):
        assert RULES.value({"pair": pair}) == {"pair": [pair[0], REDACTED]}
        assert pair[1] not in RULES.text(f"sent {tuple(pair)!r}")
    # After dashes it is a value whatever it is.
    assert RULES.value(["--password", "email"]) == ["--password", REDACTED]


def test_json_escaped_many_times() -> None:
    text = json.dumps({"user": "me", "password": 'hun"ter2'})
    for _ in range(5):
        text = json.dumps(text)
        found = RULES.text(f"said {text}, user=you")
        assert "ter2" not in found
        assert "hun" not in found
        assert found.endswith("user=you")


@pytest.mark.parametrize(
    "text",
    ["max_tokens=100", "tokens: 5, keys: 7", "Basic authentication failed", "Bearer tokenization",
     "shop.auth.Declined: no", "cryptography.fernet.InvalidToken: it is", "postgresql://me@db/shop", "http://host:8080/@me",
     "('password', 'email', 'name')", "KeyError -> retried", "shop.auth.Declined -> no", "<!-- key --> x",
     "monkeyJournal.handlers.first: 1", "task refresh_token: soft_timeout is 9 s"],
)  # fmt: skip
def test_what_only_looks_like_a_secret_is_shown(text: str) -> None:
    assert RULES.text(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("password=a,user=me", "password=[redacted],user=me"),
        ("Server=x;Password=a;b;Port=1", "Server=x;Password=[redacted];Port=1"),
        ("https://abc@host/@me", "https://[redacted]@host/@me"),
        ("config.Password: hunter2", "config.Password: [redacted]"),
    ],
)
def test_what_stands_beside_a_secret_is_shown(text: str, shown: str) -> None:
    assert RULES.text(text) == shown


HOSTILE = [
    "http://a:", "amqp://host:5672,", "a://", "http://u:x@", "http://u@", "eyJaaaaaa-", "eyJaaaaaa.", "a:", "a.a-",
    "a+", "x=1 ", "token=(", "token='\\", "token={[redacted] ", "[", "{\"a\":", "-----BEGIN A ",
    "-----BEGIN PRIVATE KEY----- ", "-----END ", "bearer ", "basic  ", "('key', \"", "('key', '",
    "[\\\"key\\\",", "key\\", "password=a,",
    "<key>", "</key>", "<key></a>", "<key><a>", "<a key ", "<", "</", "key->", "key -> ", "→", "key%3D", "a%3D",
    "%3Fkey%3D", "%25", "%253D", "key%22%3A%22", "sk-", "sk-a", "ghp_", "ghp_aaaaaaaaaaaaaaaa ",
    "xoxb-", "AKIA", "hr_", "<key>[redacted]",
    "a.Key: ", "'key' ,", "--key ", "token", " ", "\\", "Key.", "a: 1:", "authorization: Basic ", "@", ":", "=",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_the_time_grows_with_the_length(piece: str) -> None:
    """It is spent on the loop of a worker. What is quadratic takes minutes here, what is linear a part of a second."""
    text = "x=1 http://u:y " + piece * (200_000 // len(piece))
    for hostile in (text, f"{text}@"):
        began = time.process_time()
        RULES.text(hostile)
        assert time.process_time() - began < 5


def test_a_text_without_secrets_is_the_same_object() -> None:
    for text in ("plain", "a=1, b: 2", '{"a": [1, 2]}', "time 12:30:11"):
        assert RULES.text(text) is text


@pytest.mark.requirement("D70")
def test_hooks_words_and_names_that_are_shown() -> None:
    """D70: an app adds words, takes names out, and gives functions; in its arguments and later."""

    def mask_mail(name: str, value: Any) -> Any:
        return "…@" + value.partition("@")[2] if isinstance(value, str) and "@" in value else value

    app = App("sqlite:///unused.db", redact=["iban", "-order_key", mask_mail])
    app.add_redaction(lambda name, value: "hidden" if name == "salary" else value)
    assert app.redaction.value(
        {"iban": "DE1", "order_key": "a", "password": "x", "to": "me@example.org", "salary": 5, "n": 1}
    ) == {"iban": REDACTED, "order_key": "a", "password": REDACTED, "to": "…@example.org", "salary": "hidden", "n": 1}
    assert app.redaction.text("iban=DE1 order_key=a") == "iban=[redacted] order_key=a"
    # Those of one app are not those of another.
    assert App("sqlite:///unused.db").redaction.value({"iban": "DE1"}) == {"iban": "DE1"}
    for wrong in ("", "-", 7):
        with pytest.raises(SettingsError, match="redact takes"):
            app.add_redaction(wrong)  # pyright: ignore[reportArgumentType]


@pytest.mark.requirement("D70")
def test_a_hook_that_raises_hides_the_value() -> None:
    """D70: what could not be judged is not shown, and what no hook sees is redacted as ever."""
    rules = Redaction([lambda name, value: 1 / 0])
    assert rules.value({"a": "hunter2", "password": "hunter2"}) == {"a": FAILED, "password": REDACTED}
    assert rules.text("hunter2") == FAILED


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError("no")


def test_hostile_values_are_hidden_and_do_not_raise() -> None:
    ring: list[Any] = []
    ring.append(ring)
    assert RULES.value(Hostile()) == FAILED
    assert FAILED in repr(RULES.value(ring))
    assert RULES.text('{"a": 1') == '{"a": 1'


def test_what_holds_itself_or_the_same_thing_often_takes_no_time() -> None:
    """Each of 20 knows all of them: 20^50 ways, of which none is walked."""
    knot: list[Any] = [{"password": "hunter2"} for _ in range(20)]
    for each in knot:
        each["others"] = knot
    began = time.process_time()
    found = RULES.value({"knot": knot})
    assert found["knot"][0] == {"password": REDACTED, "others": FAILED}
    ladder: Any = "end"
    for _ in range(40):
        ladder = [ladder, ladder]
    RULES.value({"ladder": ladder})
    assert time.process_time() - began < 30


names = st.sampled_from(["password", "apiKey", "x_token", "auth"])
plain = st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3)
                     | st.dictionaries(st.text(max_size=5), inner, max_size=3), max_leaves=8)  # fmt: skip


@given(name=names, secret=st.uuids().map(str), around=plain, depth=st.integers(0, 5))
def test_whatever_is_around_it_a_named_secret_does_not_show(name: str, secret: str, around: Any, depth: int) -> None:
    value: Any = {name: secret, "beside": around}
    for _ in range(depth):
        value = [value, {"in": value}]
    assert secret not in repr(RULES.value(value))
    assert secret not in RULES.text(json.dumps(value))
    assert secret not in RULES.text(repr(value))
    assert secret not in RULES.text(json.dumps(json.dumps(value)))


@given(text=st.text(max_size=200))
def test_any_text_is_taken(text: str) -> None:
    assert isinstance(RULES.text(text), str)
    assert isinstance(RULES.text(f"password={text}"), str)
