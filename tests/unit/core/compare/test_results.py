"""Results beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.compare.figures import Figures
from core.compare.results import Row, result_rows
from core.formatting import UNKNOWN
from core.run_folder.record import RunRecord
from core.run_folder.state import RunState
from core.run_folder.store import RunEntry


def record(name: str, **state: Any) -> RunRecord:
    values: dict[str, Any] = {"state": "finished", "recipe": "minigpt", "world_size": 2, "devices": ("GPU-1",)}
    return RunRecord(RunEntry(Path(name), RunState(name).replace(**(values | state))))


def rows(*runs: tuple[RunRecord, Figures]) -> dict[str, Row]:
    return {row.name: row for row in result_rows([run for run, _ in runs], [own for _, own in runs])}


def test_each_result_says_value_and_place() -> None:
    ranks = {f"rank{rank}": {"accuracy": accuracy} for rank, accuracy in enumerate((0.25, 0.75, 9.0))}
    evals = {"val_loss": [(10.0, 2.0), (20.0, 1.5), (30.0, 1.75)]}
    state = {"step": 40, "total_steps": 100, "loss": 1.25, "trained_s": 600.0}
    first = (record("a", **state), Figures(ranks, {"tokens_per_s": 200.0}, evals, 3_400_000))
    second = (record("b", step=100, total_steps=100), Figures(evals={"val_loss": [(50.0, 1.625)]}))
    found = rows(first, second)
    assert found["state"].texts == ("finished", "finished")
    assert found["best_val_loss"].texts == ("1.500 at 20", "1.625 at 50")
    assert (found["best_val_loss"].best, found["val_loss"].best) == ((0,), (1,))
    assert found["best_val_loss"].values[0] == {"value": 1.5, "step": 20}
    assert found["loss"].values == (1.25, None)
    assert found["step"].texts == ("40 of 100", "100")
    assert found["duration_s"].texts == ("10 m 00 s", UNKNOWN)
    assert found["tokens_per_s"].values == (200.0, None)
    assert found["accuracy"].label == "Last accuracy"
    assert found["accuracy"].values == (0.5, None), "the mean of two ranks: the third is of an older attempt"
    assert found["disk_bytes"].texts == ("3.4 MB", UNKNOWN)


def test_the_best_of_other_metrics_is_marked_where_its_direction_is_known() -> None:
    names = ("val_accuracy", "gain")
    own = [Figures(evals={name: [(10.0, high), (20.0, 0.25)] for name in names}) for high in (0.5, 0.75)]
    found = rows((record("a"), own[0]), (record("b"), own[1]))
    assert found["best_val_accuracy"].texts == ("0.5000 at 10", "0.7500 at 10")
    assert found["best_val_accuracy"].best == (1,)
    assert found["gain"].label == "Last gain" and "best_gain" not in found


def test_a_recipe_says_which_values_are_better() -> None:
    names = ("episode_return", "loss_of_policy")
    own = [Figures({"rank0": dict.fromkeys(names, value)}) for value in (20.0, 480.0)]
    runs = [
        (record(name, recipe="clstm_ppo", loss=loss), run) for name, loss, run in zip("ab", (1, 2), own, strict=True)
    ]
    found = rows(*runs)
    assert (found["episode_return"].label, found["episode_return"].best) == ("Last return", (1,))
    assert found["loss"].best == ()  # PPO's loss says nothing about how good a policy is
    assert list(found)[-2:] == ["episode_return", "loss_of_policy"]


def test_values_that_read_the_same_are_as_good() -> None:
    runs = [(record(name, loss=loss), Figures()) for name, loss in (("a", 1.23451), ("b", 1.23452), ("c", 2.0))]
    assert rows(*runs)["loss"].best == (0, 1)
    assert rows(*runs[:2])["loss"].best == ()


def test_losses_of_different_recipes_are_not_ranked() -> None:
    evals = {"val_loss": [(10.0, 2.0)]}, {"val_loss": [(10.0, 1.0)]}
    found = rows((record("a"), Figures(evals=evals[0])), (record("b", recipe="clstm_ppo"), Figures(evals=evals[1])))
    assert found["best_val_loss"].best == ()


def test_a_damaged_or_deleted_run_has_dashes() -> None:
    damaged = RunRecord(RunEntry(Path("c"), None, "It cannot be read."))
    found = rows((record("a", step=3), Figures()), (damaged, Figures(disk_bytes=9)), (damaged, Figures()))
    assert found["state"].texts == ("finished", "damaged", "deleted")
    assert found["step"].texts == ("3", UNKNOWN, UNKNOWN)
    assert "loss" not in found  # no run has one


@pytest.mark.parametrize(
    ("texts", "differs", "changed"),
    [
        (("a", "a", "a"), False, ()),
        (("a", "a", "b"), True, (2,)),
        (("a", "b"), True, (1,)),
        (("a", "b", "b", "a"), True, (1, 2)),
    ],
)
def test_what_the_first_run_does_not_have_stands_out(
    texts: tuple[str, ...], differs: bool, changed: tuple[int, ...]
) -> None:
    row = Row("lr", "Learning rate", texts, texts)
    assert (row.differs, row.changed) == (differs, changed)


def test_a_line_that_no_run_fills_is_empty() -> None:
    assert Row("driver", "Driver", (None, None), (UNKNOWN, UNKNOWN)).is_empty
    assert not Row("driver", "Driver", (None, "1"), (UNKNOWN, "1")).is_empty
