"""Which copy goes on, from which step, and in what words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.checkpoints.restore_plan import AVERAGE, plan_restore
from core.checkpoints.store import Checkpoint
from core.protocol.messages import Position
from tests.helpers.made_runs import write_values


def checkpoint(folder: Path, mode: str, *ranks: dict[str, Any]) -> Checkpoint:
    """One whose ranks said these counters; `step`, `samples` and `partial` go into their positions."""
    positions = {}
    for rank, said in enumerate(ranks):
        counters = {key: value for key, value in said.items() if key not in ("step", "samples", "partial")}
        write_values(folder / f"rank{rank}.safetensors", {"counters": counters})
        positions[rank] = Position(said.get("step", 10), said.get("samples", 100), [], said.get("partial", []))
    step = max(position.step for position in positions.values())
    return Checkpoint(7, folder, step, 0.0, len(ranks), mode, None, positions, ())


def test_one_set_of_weights_goes_anywhere(tmp_path: Path) -> None:
    made = checkpoint(tmp_path, "zero", {}, {})
    for mode, world, same in (("ddp", 3, True), ("single", 1, True), ("independent", 2, False)):
        found = plan_restore(made, mode, world, "best")
        assert (found.copies, found.steps, found.same_groups) == (("",) * world, (10,) * world, same)
        assert found.note == ""


def test_fresh_weights_have_nothing_behind_them() -> None:
    found = plan_restore(None, "independent", 2, "best")
    assert (found.copies, found.steps, found.note) == (("", ""), (0, 0), "")


def test_each_goes_on_with_its_own_copy(tmp_path: Path) -> None:
    found = plan_restore(checkpoint(tmp_path, "independent", {"step": 8}, {"step": 10}), "independent", 2, "average")
    assert (found.copies, found.steps, found.same_groups, found.note) == (("0", "1"), (8, 10), True, "")


def test_a_new_rank_begins_with_the_best_copy_at_the_highest_step(tmp_path: Path) -> None:
    made = checkpoint(tmp_path, "independent", {"step": 30, "val_loss": 2.5}, {"step": 20, "val_loss": 2.25})
    found = plan_restore(made, "independent", 4, "best")
    assert (found.copies, found.steps) == (("0", "1", "1", "1"), (30, 20, 30, 30))
    assert found.note == "2 more devices start from the copy of rank 1 (validation loss 2.25)"
    assert not found.same_groups


@pytest.mark.parametrize(("mode", "world"), [("ddp", 3), ("single", 1), ("zero", 2), ("independent", 2)])
@pytest.mark.parametrize("policy", ["best", "none"])
def test_the_lowest_validation_loss_goes_on(tmp_path: Path, mode: str, world: int, policy: str) -> None:
    made = checkpoint(
        tmp_path,
        "independent",
        {"step": 80, "val_loss": 2.5, "val_step": 80, "chunks_alone": 12, "partial": [[0, 0, 3, 5]]},
        {"step": 70, "val_loss": 2.31, "val_step": 64, "chunks_alone": 11},
        {"step": 75, "val_loss": 2.4, "val_step": 75, "chunks_alone": 1},
    )
    found = plan_restore(made, mode, world, policy)
    assert found.copies == ("1",) * world
    assert found.steps == (80,) * world, "no curve runs backwards"
    assert found.note == (
        "the copy of rank 1 (validation loss 2.31, measured at step 64); what rank 0 and rank 2 learned alone is "
        "missing from these weights, though its samples count as trained"
    )


def test_where_nothing_was_measured_the_most_samples_count(tmp_path: Path) -> None:
    made = checkpoint(tmp_path, "independent", {"samples": 90, "chunks_alone": 0}, {"samples": 120})
    found = plan_restore(made, "ddp", 2, "best")
    assert found.copies == ("1", "1")
    assert found.note == "the copy of rank 1 (120 samples seen)", "rank 0 has nothing that would be lost"


def test_a_loss_that_is_no_number_is_none(tmp_path: Path) -> None:
    made = checkpoint(
        tmp_path, "independent", {"val_loss": float("nan"), "samples": 5}, {"val_loss": 9.0, "samples": 1}
    )
    assert plan_restore(made, "single", 1, "best").copies == ("1",)


def test_the_average_of_all(tmp_path: Path) -> None:
    found = plan_restore(checkpoint(tmp_path, "independent", {"step": 8}, {"step": 10}), "zero", 3, "average")
    assert (found.copies, found.steps) == ((AVERAGE,) * 3, (10,) * 3)
    assert found.note == "the average of the copies of rank 0 and rank 1"


def test_copies_that_were_synchronised_are_averaged_as_the_next_time_would_have(tmp_path: Path) -> None:
    made = checkpoint(tmp_path, "independent", {"sync_every": 10, "val_loss": 1.0}, {"sync_every": 10, "val_loss": 2.0})
    assert plan_restore(made, "ddp", 2, "best").copies == (AVERAGE, AVERAGE)


def test_copies_that_are_brought_together_from_now_on_begin_alike(tmp_path: Path) -> None:
    made = checkpoint(tmp_path, "independent", {"val_loss": 2.0}, {"val_loss": 1.0})
    found = plan_restore(made, "independent", 2, "best", synchronise=True)
    assert found.copies == ("1", "1") and "the copy of rank 1" in found.note
    known = checkpoint(tmp_path, "independent", {"sync_every": 10}, {"sync_every": 10})
    assert plan_restore(known, "independent", 2, "best", synchronise=True).copies == ("0", "1")
