"""Dataclasses from JSON that anyone may have written: what fits is taken, what does not is named with its place."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from core.records import Finite, Limits, RecordError, Text, Whole, read_record

pytestmark = pytest.mark.windows


@dataclass(frozen=True)
class Part:
    size: Whole
    name: Annotated[str, Limits(1, 5)] = "none"


@dataclass(frozen=True)
class Document:
    number: int
    share: float = 0.5
    loss: Finite | None = None
    ready: bool = False
    role: Literal["rank", "client"] = "rank"
    folder: Path = Path()
    parts: list[Part] = field(default_factory=list)
    words: tuple[Text, ...] = ()
    by_rank: dict[int, Part] = field(default_factory=dict)
    groups: Annotated[int, Limits(1, 8)] = field(default=1, metadata={"key": "group_count"})
    more: Any = None


def test_each_value_gets_its_fields_type() -> None:
    value = {
        "number": -3, "share": 2, "loss": None, "ready": True, "role": "client", "folder": "a b",
        "parts": [{"size": 1}], "words": ["x", "ü"], "group_count": 2,
        "by_rank": {"7": {"size": 2, "name": "seven"}}, "more": [{}], "unknown": 1,
    }  # fmt: skip
    made = read_record(Document, value)
    parts, by_rank = [Part(1)], {7: Part(2, "seven")}
    assert made == Document(-3, 2.0, None, True, "client", Path("a b"), parts, ("x", "ü"), by_rank, 2, [{}])
    assert isinstance(made.share, float)
    assert read_record(Document, {"number": 1}) == Document(1)
    assert math.isnan(read_record(Document, {"number": 1, "share": math.nan}).share), "no limits, no check"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"number": True}, "number holds true or false; it must be a whole number"),
        ({"number": 1.0}, "number is 1.0; it must be a whole number"),
        ({"number": None}, "number holds nothing (null); it must be a whole number"),
        ({"share": "1"}, "share holds text; it must be a number"),
        ({"loss": math.inf}, "loss is inf; it must be a number from"),
        ({"loss": math.nan}, "loss is nan; it must be a number from"),
        ({"ready": 1}, "ready is 1; it must be true or false"),
        ({"role": []}, "role holds a list; it must be rank or client"),
        ({"folder": 3}, "folder is 3; it must be text"),
        ({"parts": {}}, "parts holds an object; it must be a list"),
        ({"parts": [{"size": 1}, 5]}, "parts[1] is 5; it must be an object"),
        ({"parts": [{"size": 1}, {"size": -1}]}, "parts[1].size is -1; it must be a whole number of 0 or more"),
        ({"parts": [{}]}, "parts[0].size is missing"),
        ({"parts": [{"size": 10**30}]}, "parts[0].size is 1e+30; it must be a whole number of 0 or more"),
        ({"parts": [{"size": 1, "name": ""}]}, "parts[0].name holds text; it must be text from 1 to 5"),
        ({"words": ["\ud800"]}, "words[0] holds text; it must be text of 0 or more"),
        ({"by_rank": {"x": {"size": 1}}}, "by_rank.x is not a whole number"),
        ({"by_rank": {"1": {"size": "a"}}}, "by_rank.1.size holds text"),
        ({"group_count": 9}, "group_count is 9; it must be a whole number from 1 to 8"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(RecordError) as caught:
        read_record(Document, {"number": 1} | change)
    assert str(caught.value).startswith(problem)


def test_the_document_itself_must_be_an_object() -> None:
    with pytest.raises(RecordError, match="it holds a list; it must be an object"):
        read_record(Document, [])


def test_strict_refuses_keys_that_are_no_fields_at_any_depth() -> None:
    for value, place in (
        ({"number": 1, "b": 1, "a": 1}, "a"),
        ({"number": 1, "parts": [{"size": 1, "x": 1}]}, "parts[0].x"),
    ):
        with pytest.raises(RecordError, match=f"^{place.replace('[0]', '.0.')} is not known$"):
            read_record(Document, value, strict=True)
