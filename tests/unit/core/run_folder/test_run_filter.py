"""The filter over runs: names, tags, states and settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.run_folder.notes import RunNotes
from core.run_folder.record import RunRecord
from core.run_folder.run_filter import filter_problem, matching, parse_filter, unknown_names
from core.run_folder.state import RunState
from core.run_folder.store import RunEntry


def record(
    run_id: str, notes: RunNotes | None = None, settings: dict[str, Any] | None = None, **state: Any
) -> RunRecord:
    stored = RunState(run_id, name=run_id, recipe="minigpt", **state)
    return RunRecord(RunEntry(Path("runs") / run_id, stored), notes or RunNotes(), settings or {})


RUNS = [
    record(
        "one", RunNotes("Night run", "bigger batch", ("night",)), {"lr": 1e-3, "n_layer": 4}, state="finished", loss=1.9
    ),
    record(
        "two", RunNotes(tags=("draft", "night")), {"lr": 1e-4, "bf16": True}, state="failed", world_size=2, mode="ddp"
    ),
    record("three", None, {"lr": 6e-4, "dataset_file": "C:\\Data\\Wiki.txt"}, state="stopped", loss=2.5, mode="zero"),
    RunRecord(RunEntry(Path("runs") / "broken", None, "It is damaged.")),
]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "one two three broken"),
        ("night", "one two"),
        ("NIGHT batch", "one"),
        ('"bigger batch"', "one"),
        ('"batch bigger"', ""),
        ("tag:night state:failed", "two"),
        ("tag=nig", ""),
        ("lr>1e-4", "one three"),
        ("lr>=1e-4 lr<1e-3", "two three"),
        ("lr=0.0006", "three"),
        ("learning-rate:1e-3", "one"),
        ("loss<2", "one"),
        ("devices:2", "two"),
        ("mode!=ddp", "one three broken"),
        ("!mode:ddp", "one three broken"),
        ("!night", "three broken"),
        ("dataset-file:wiki", "three"),
        ("bf16:true", "two"),
        ("n_layer>3", "one"),
        ("state:damaged", "broken"),
        ("lr>abc", ""),
        ("id:thr", "three"),
    ],
)
def test_all_terms_must_hold(text: str, found: str) -> None:
    assert [one.path.name for one in matching(RUNS, parse_filter(text))] == found.split()


def test_a_name_that_no_run_has_is_told() -> None:
    terms = parse_filter("n_layers>3 lr>0 words")
    assert unknown_names(RUNS, terms) == ["n_layers"]


@pytest.mark.parametrize("text", ['"', ":", ">", "lr>", 'name:"open', "a:b:c", "!", "\x00"])
def test_every_text_is_a_filter(text: str) -> None:
    matching(RUNS, parse_filter(text))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", ""),
        ("night lr>1e-4", ""),
        ("lr>", "lr> needs a value, as in lr>1e-4."),
        ("night !steps<= ", "!steps<= needs a value, as in lr<=1e-4."),
        ("state:", "state: needs a value, as in mode:ddp."),
        ("lr>abc", "lr> compares numbers, and 'abc' is not one."),
        ("C:", "C: needs a value, as in mode:ddp."),
        ('"lr>"', ""),
    ],
)
def test_a_filter_that_cannot_match_says_so(text: str, problem: str) -> None:
    assert filter_problem(text) == problem


def test_a_term_without_a_value_is_left_out_while_it_is_typed() -> None:
    assert parse_filter("night lr>") == parse_filter("night")
    assert len(parse_filter("lr> night")) == 2, "only at the end: elsewhere it is a word"
