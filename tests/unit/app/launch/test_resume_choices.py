"""Choices of the Resume dialog as texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.launch.resume_choices import (
    NEWEST,
    checkpoint_choices,
    finished_at,
    mode_choices,
    run_choices,
)
from core.checkpoints.checkpoint_choice import CheckpointEntry
from core.recipes.user_script import RECIPE as USER_SCRIPT
from core.run_folder.state import RunState
from core.run_folder.store import list_runs
from tests.helpers.made_runs import TEXT, make_run

pytestmark = pytest.mark.windows


def test_checkpoints_newest_first_with_the_best_marked() -> None:
    entries = (
        CheckpointEntry(1, 200, 2.5, False, False),
        CheckpointEntry(2, 400, 1.9, False, True),
        CheckpointEntry(3, 610, 2.0, False, False),
        CheckpointEntry(4, 800, None, True, False),
    )
    assert list(checkpoint_choices(entries, 2)) == [
        ("Checkpoint 3 · step 610", None),
        ("Checkpoint 2 · step 400 · best · set aside", 2),
        ("Checkpoint 1 · step 200", 1),
    ], "one that is diverged cannot be resumed from"
    assert "best" not in " ".join(text for text, _ in checkpoint_choices(entries, None))
    assert list(checkpoint_choices((), None)) == [(NEWEST, None)]


def test_runs_have_their_name_and_how_far_they_came(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_bytes(TEXT)
    store = make_run(tmp_path, runs_dir=tmp_path / "runs")
    store.write_state(store.stored_state().replace(step=610, total_steps=1000))
    entries = list_runs(tmp_path / "runs")
    assert list(run_choices(entries, {store.dir: "night"})) == [
        ("night · stopped at step 610 of 1,000", str(store.dir))
    ]
    (unnamed,) = run_choices(entries, {})
    assert unnamed[0].endswith(" · stopped at step 610 of 1,000") and "minigpt" in unnamed[0].lower()


def test_load_balancing_can_be_turned_on_where_an_alert_advises_it() -> None:
    choices = dict(mode_choices({"mode": "zero", "zero_stage": "2", "balance": "measured"}))
    assert choices["DDP with load balancing"] == {"mode": "ddp", "balance": "measured"}
    assert choices["DDP"] == {"mode": "ddp"} and "as in New run: ZeRO, stage 2" in choices


def test_only_a_finished_run_needs_a_larger_step() -> None:
    state = RunState("a", "a", "finished", step=60, total_steps=60)
    assert finished_at(state) == 60
    assert finished_at(state.replace(state="stopped")) is None
    assert finished_at(state.replace(recipe=USER_SCRIPT)) is None
    assert finished_at(None) is None
