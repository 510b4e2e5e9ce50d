"""How a long text is cut, and how a stream of events is read."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.contrib.summarize.chunks import split, tokens
from headrace.contrib.summarize.events import EventReader, TooLong

WORDS = st.text(alphabet=st.sampled_from("abc é世。.!?…\n\t "), max_size=400)


@given(text=WORDS, limit=st.integers(2, 60))
def test_parts_fit_and_together_are_the_text(text: str, limit: int):
    parts = split(text, limit)
    assert all(tokens(part) <= limit for part in parts)
    assert all(part.strip() for part in parts)
    assert re.sub(r"\s", "", "".join(parts)) == re.sub(r"\s", "", text)


def test_a_text_is_cut_where_it_hurts_least():
    paragraphs = ["First one. It has two sentences.", "Second one. It has two, too.", "Third."]
    text = "\n\n".join(paragraphs)
    assert split(text, 1000) == [text]
    assert split(text, 10) == paragraphs
    assert split(paragraphs[0], 6) == ["First one.", "It has two sentences."]
    assert split("one two three", 2) == ["one", "two", "three"]
    assert split("x" * 10, 2) == ["x" * 2] * 5
    assert split(" \n ", 5) == []


def test_tokens_are_estimated_on_the_safe_side():
    assert tokens("") == 0
    assert tokens("word" * 10) == 10
    assert tokens("世界") == 2


@given(cuts=st.lists(st.integers(1, 60), max_size=10), end=st.sampled_from(["\n", "\r\n", "\r"]))
def test_events_are_the_same_however_the_bytes_come(cuts: list[int], end: str):
    events = ['{"a": "x\u2028y\x85z"}', "[DONE]", "two\nlines"]
    stream = "".join(
        ": a comment" + end + "".join(f"data: {line}{end}" for line in event.split("\n")) + end for event in events
    ).encode()
    places = sorted({min(cut * 3, len(stream)) for cut in cuts})
    reader, found = EventReader(limit=10_000), []
    for start, stop in zip([0, *places], [*places, len(stream)], strict=True):
        found += reader.feed(stream[start:stop])
    # A lone \r at the very end may be half of a line's end: it is decided by what follows.
    found += reader.feed(b": end\n")
    assert found == events


def test_an_endless_answer_is_given_up():
    reader = EventReader(limit=100)
    reader.feed(b"x" * 100)
    with pytest.raises(TooLong):
        reader.feed(b"x")
