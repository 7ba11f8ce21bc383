"""A run whose weights diverge keeps its good checkpoints, says so once, and resumes from a good one.

Weights that an update makes NaN: a loss or gradient that is not finite moves none (`test_non_finite`).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="trains for real")

from core.checkpoints.store import CheckpointStore
from core.cli import main
from core.errors import UsageError
from core.export.weights import find_weights
from core.ledger.ledger import Ledger
from core.ledger.state_file import read_state_file
from core.resume.planner import plan_resume
from core.run_folder.store import RunStore
from tests.helpers.forking import ROOT
from tests.helpers.hosted_run import host, lines, make_run, write_text

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
RECIPE = ROOT / "tests" / "helpers" / "recipes" / "diverging"


def diverging(folder: Path, mode: str = "single", world: int = 1, **settings: Any) -> RunStore:
    """A run of 40 steps with a checkpoint every 10, whose weights are broken by the update of step 23."""
    options = {"bad": "weights", "bad_from": 23, **settings.pop("options", {})}
    values = {"steps": 40, "checkpoint_every_steps": 10, "eval_every": 1000, "lr": 1.0, **settings}
    text = write_text(folder / "text.txt")
    return make_run(folder / "run", text, mode, world, recipe=str(RECIPE), options=options, **values)


def steps_kept(store: RunStore) -> dict[int, int]:
    """Step by number, of the checkpoints that are good."""
    return {kept.number: kept.step for kept in CheckpointStore(store.checkpoints).list() if not kept.diverged}


def alerts(store: RunStore, kind: str) -> list[dict[str, Any]]:
    return [line for line in lines(store, "alert") if line["kind"] == kind]


def is_finite(loss: float | None) -> bool:
    """Whether a loss in a metrics line was a number; others are written as null."""
    return loss is not None and math.isfinite(loss)


MODES = [("single", 1, {}), ("ddp", 2, {}), ("zero", 2, {"zero_stage": 1, "zero_engine": "torch"}), ("fsdp", 2, {})]


@pytest.mark.parametrize(("mode", "world", "settings"), MODES, ids=[mode for mode, _, _ in MODES])
def test_a_diverged_run_keeps_its_good_checkpoints_and_resumes_from_one(
    mode: str, world: int, settings: dict[str, Any], tmp_path: Path
) -> None:
    """In the last step of all, where there is no next one to notice it."""
    store = diverging(tmp_path, mode, world, options={"bad_from": 40}, **settings)
    assert host(store) == 1
    good = steps_kept(store)
    number, step = max(good.items())
    (last,) = [kept for kept in CheckpointStore(store.checkpoints).list() if kept.diverged]
    assert (last.number, last.step, last.diverged) == (number + 1, 40, tuple(range(world)))
    state = store.state()
    assert (state.state, state.step, state.checkpoint) == ("finished", 40, number)
    assert state.error is not None and state.error["title"] == "Training has diverged"
    assert (
        f"checkpoint {number}, step {step}" in state.error["next_step"] and "learning rate" in state.error["next_step"]
    )
    assert not store.model.exists()

    with pytest.raises(UsageError, match="not finite") as refused:
        find_weights(store, None)
    assert f"--checkpoint {number}" in refused.value.next_step

    plan = plan_resume(str(store.dir), store.dir.parent, {"steps": "50", "lr": "0.1"})
    passed_over = f"Checkpoint {last.number} (step 40) is diverged (weights are not finite); "
    assert f"{passed_over}continuing from checkpoint {number}, step {step}." in plan.lines()
    assert (plan.checkpoint, plan.step) == (number, step)
    store.run_toml.write_text(store.run_toml.read_text().replace("lr = 1.0", "lr = 0.1"), encoding="utf-8")
    assert host(store) == 0
    after = CheckpointStore(store.checkpoints).list()
    assert after[-1].step == 40 and not any(kept.diverged for kept in after)
    assert last.number not in [kept.number for kept in after], "a newer good one removes the diverged one"
    again = [line["step"] for line in lines(store, "step") if line["attempt"] == 2 and line["rank"] == 0]
    assert again == list(range(step + 1, 41))
    assert store.model.exists()
    trained = Ledger.from_file(read_state_file(store.ledger)).samples_trained
    assert trained == 40 * 4 * world, "each sample once, counted from the checkpoint that was resumed"


@pytest.mark.parametrize(("mode", "world"), [("single", 1), ("ddp", 2), ("fsdp", 2)])
def test_a_checkpoint_of_broken_weights_is_left_out_and_the_next_step_ends_the_run(
    mode: str, world: int, tmp_path: Path
) -> None:
    """Only the last rank's weights are broken: all ranks of a replica group leave the checkpoint out."""
    store = diverging(tmp_path, mode, world, options={"bad_from": 30, "bad_rank": world - 1})
    assert host(store) == 1
    good = steps_kept(store)
    assert list(good.values()) in ([10, 20], [10]), "a slow disk may still be busy with the first at step 20"
    (alert,) = alerts(store, "diverged")
    assert alert["step"] == 30 and f"step {max(good.values())}" in alert["next_step"]
    assert alert["cause"].endswith("and earlier ones are kept.")
    error = store.state().error
    assert error is not None and "At step 31 the weights are not finite." in error["cause"]
    assert "Lower the learning rate." in error["next_step"] and not alerts(store, "non_finite")


def test_a_diverged_rank_that_trains_alone_keeps_its_last_good_part(tmp_path: Path) -> None:
    """The other rank's work is committed beside it, and a merge finds no weights that are not finite."""
    store = diverging(tmp_path, "independent", 2, options={"bad_rank": 1, "bad_from": 35})
    assert host(store) == 0
    newest, passed_over = CheckpointStore(store.checkpoints).newest_valid()
    assert newest is not None and not passed_over and not newest.diverged
    assert newest.positions[0].step == 40 and newest.positions[1].step < 35
    (merge,) = lines(store, "merge")
    assert all(loss is not None and math.isfinite(loss) for loss in merge["val_losses"].values())
    assert {alert["rank"] for alert in alerts(store, "non_finite")} == {1}


@pytest.mark.parametrize("method", ["average", "diloco"])
def test_a_local_sgd_round_leaves_out_the_rank_that_diverged(method: str, tmp_path: Path) -> None:
    """It takes the others' mean and trains on; its NaN reaches neither their weights nor its own next steps."""
    options = {"bad_rank": 1, "bad_until": 23}
    store = diverging(tmp_path, "independent", 2, sync_every=10, sync_method=method, options=options)
    assert host(store) == 0
    (alert,) = alerts(store, "left_out_of_round")
    assert (alert["rank"], alert["round"], alert["ranks"], alert["step"]) == (1, 3, [1], 30)
    assert "round 3" in alert["cause"] and alert["title"] == "A device was left out of a local SGD round"
    lost = {(line["rank"], line["step"]) for line in lines(store, "step") if not is_finite(line["loss"])}
    assert lost == {(1, step) for step in range(24, 31)}
    newest, _ = CheckpointStore(store.checkpoints).newest_valid()
    assert newest is not None and not newest.diverged and newest.step == 40
    weights = [(newest.folder / f"weights_rank{rank}.safetensors").read_bytes() for rank in range(2)]
    assert weights[0] == weights[1] and store.model.exists()
    trained = Ledger.from_file(read_state_file(store.ledger)).samples_trained
    assert trained == 40 * 4 * 2 - 7 * 4, "it skipped its batches until the round"


def test_a_local_sgd_round_in_which_all_ranks_diverged_is_skipped(tmp_path: Path) -> None:
    store = diverging(tmp_path, "independent", 2, sync_every=10, steps=30)
    assert host(store) == 1
    (alert,) = alerts(store, "left_out_of_round")
    assert (alert["rank"], alert["round"], alert["ranks"]) == (0, 3, [0, 1])
    assert max(steps_kept(store).values()) <= 20


def test_a_run_that_diverges_before_its_first_checkpoint_starts_again(tmp_path: Path) -> None:
    store = diverging(tmp_path, steps=12, options={"bad_from": 10})
    assert host(store) == 1
    (alert,) = alerts(store, "diverged")
    assert alert["cause"].endswith("so no checkpoint is taken, and there is no earlier one.")
    assert steps_kept(store) == {}
    error = store.state().error
    assert error is not None and error["title"] == "CPU 0: Training has diverged"
    store.run_toml.write_text(store.run_toml.read_text().replace("lr = 1.0", "lr = 0.1"), encoding="utf-8")
    assert host(store) == 0
    assert 12 in steps_kept(store).values()


def test_a_run_whose_only_checkpoint_is_diverged_starts_again(tmp_path: Path) -> None:
    store = diverging(tmp_path, steps=5, options={"bad_from": 5})
    assert host(store) == 1
    error = store.state().error
    assert error is not None and "start the run again" in error["next_step"]
    plan = plan_resume(str(store.dir), store.dir.parent, {"steps": "20", "lr": "0.1"})
    assert plan.checkpoint is None and any("starting with fresh weights" in line for line in plan.lines())
    assert "Data: from the beginning." in plan.lines()
    store.run_toml.write_text(store.run_toml.read_text().replace("lr = 1.0", "lr = 0.1"), encoding="utf-8")
    assert host(store) == 0
    assert 5 in steps_kept(store).values() and 1 not in steps_kept(store)


@pytest.mark.usefixtures("quick_hosts")
def test_going_back_to_a_checkpoint_trains_the_same_steps_again(tmp_path: Path) -> None:
    """From the command line: what comes after the checkpoint is trained again, bit by bit, under new numbers."""
    store = diverging(tmp_path, options={"bad_from": 1_000_000}, keep_checkpoints=9)
    assert host(store) == 0
    before = {line["step"]: line["loss"] for line in lines(store, "step")}
    kept = steps_kept(store)
    newest = max(kept)
    first = store.checkpoints / "1" / "rank0.safetensors"
    content = first.read_bytes()
    assert main(["resume", str(store.dir), "--checkpoint", "1", "--yes"]) == 0
    assert first.read_bytes() == content
    again = {line["step"]: line["loss"] for line in lines(store, "step") if line["attempt"] == 2}
    assert again == {step: loss for step, loss in before.items() if step > kept[1]}
    aside = CheckpointStore(store.checkpoints).set_aside()
    assert list(aside) == [number for number in kept if number > 1]
    assert max(steps_kept(store)) > newest, "no number is given twice"
    assert Ledger.from_file(read_state_file(store.ledger)).samples_trained == 40 * 4
