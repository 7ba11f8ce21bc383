"""Counters and seeds of a rank that resumes with other replica groups than before."""

from __future__ import annotations

from typing import Any

import pytest

from core.protocol.messages import RankStart
from workers.training.rank_checkpoints import fresh_seed, taken_up

pytestmark = pytest.mark.windows

SAVED: dict[str, Any] = {
    "step": 40,
    "samples_seen": 400,
    "chunks_done": 13,
    "chunks_alone": 1,
    "val_step": 32,
    "val_loss": 2.5,
}


def test_nothing_changes_where_nothing_has_changed() -> None:
    assert taken_up(SAVED, None, 0) == SAVED
    assert taken_up(SAVED, RankStart(40, copy="1"), 1) == SAVED


def test_another_s_copy_is_known_by_its_loss_and_has_learned_nothing_alone() -> None:
    start = RankStart(60, copy="1", samples_seen=900)
    values = taken_up(SAVED, start, 0)
    assert (values["step"], values["samples_seen"], values["val_loss"], values["chunks_alone"]) == (60, 900, 2.5, 0)


def test_an_average_was_never_measured() -> None:
    values = taken_up(SAVED, RankStart(60, copy="average"), 0)
    assert values["val_loss"] is None and values["chunks_alone"] == 0


def test_samples_of_the_round_so_far_stay_the_same() -> None:
    saved = {**SAVED, "dial": {"round": 2, "next_step": 50, "samples_at": 380}}
    values = taken_up(saved, RankStart(40, copy="1", samples_seen=1000), 2)
    assert values["samples_seen"] - values["dial"]["samples_at"] == 20
    assert values["dial"]["round"] == 2


def test_seeds_differ_by_rank_and_step() -> None:
    assert fresh_seed(5, 0, 0) == 6, "as at the very first start"
    assert len({fresh_seed(5, rank, step) for rank in range(4) for step in range(200)}) == 800
