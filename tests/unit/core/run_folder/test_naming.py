"""Readable names: what was trained, on what, where and when."""

from __future__ import annotations

import time

import pytest

from core.run_folder.naming import first_name, label
from core.run_folder.notes import RunNotes
from core.run_folder.state import RunState

NOON = time.mktime((2026, 11, 23, 12, 17, 0, 0, 0, -1))


@pytest.mark.parametrize(
    ("title", "dataset", "name"),
    [
        ("MiniGPT", "stdlib://", "MiniGPT · stdlib"),
        ("MiniGPT", "hf://user/texts", "MiniGPT · user/texts"),
        ("MiniGPT", "C:\\data\\shakespeare.txt", "MiniGPT · shakespeare.txt"),
        ("MiniGPT", "/data/shakespeare.txt", "MiniGPT · shakespeare.txt"),
        ("train.py", "", "train.py"),
    ],
)
def test_a_new_run_is_named_after_recipe_and_data(title: str, dataset: str, name: str) -> None:
    assert first_name(title, dataset) == name


def state(**changes: object) -> RunState:
    first = RunState("minigpt-1", name="MiniGPT · stdlib", created=NOON, mode="ddp", devices=("a", "b"), world_size=2)
    return first.replace(**changes)


def test_a_list_says_where_and_when() -> None:
    assert label(state(), RunNotes(), NOON + 3600) == "MiniGPT · stdlib · DDP × 2 · 12:17"
    assert label(state(), RunNotes(), NOON + 86_400) == "MiniGPT · stdlib · DDP × 2 · 2026-11-23 12:17"
    one = {"mode": "single", "world_size": 1}
    assert label(state(**one, devices=("cpu:0",)), RunNotes(), NOON) == "MiniGPT · stdlib · 1 CPU · 12:17"
    assert label(state(**one, devices=("GPU-1",)), RunNotes(), NOON) == "MiniGPT · stdlib · 1 GPU · 12:17"
    assert label(state(mode="auto"), RunNotes(), NOON) == "MiniGPT · stdlib · 12:17"


def test_a_persons_name_comes_first_and_an_old_run_keeps_its_id() -> None:
    assert label(state(), RunNotes("the good one")) == "the good one"
    assert label(state(name="minigpt-1"), RunNotes()) == "minigpt-1"
    assert label(state(name=""), RunNotes()) == "minigpt-1"
