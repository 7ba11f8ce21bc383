"""A poisoned sample: its batch is left out on all ranks, exactly, and named; or the run goes back, or ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="trains for real")

import torch

from core.checkpoints.store import CheckpointStore
from core.ledger.state_file import LedgerFile, read_state_file
from core.run_folder.store import RunStore
from tests.helpers.deepspeed_here import needs_deepspeed
from tests.helpers.forking import ROOT
from tests.helpers.hosted_run import host, lines, make_run, write_text
from workers.state_files.safetensors_files import read
from workers.state_files.saved_state import SavedState

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
RECIPES = ROOT / "tests" / "helpers" / "recipes"
SAMPLES = 320
POISONED = 133
MODES = {
    "single": ("single", 1, {}),
    "ddp": ("ddp", 2, {}),
    "ddp over gloo": ("ddp", 2, {"gradient_exchange": "plain"}),
    "ddp, two micro-batches": ("ddp", 2, {"batch_size": 2, "grad_accum_steps": 2}),
    "ddp, fp16": ("ddp", 2, {"precision": "fp16"}),
    "zero 1": ("zero", 2, {"zero_stage": 1, "zero_engine": "torch"}),
    "zero 2": ("zero", 2, {"zero_stage": 2, "zero_engine": "torch"}),
    "fsdp": ("fsdp", 2, {}),
    "independent": ("independent", 2, {"merge_policy": "none"}),
}


def counted(folder: Path, mode: str, world: int, poisoned: str = str(POISONED), **settings: Any) -> RunStore:
    """One epoch over a dataset of which some samples are poisoned, with a checkpoint every five steps."""
    folder.mkdir(exist_ok=True)
    values = {"epochs": 1, "checkpoint_every_steps": 5, "lr": 1.0, "keep_checkpoints": 50, **settings}
    options = {"samples": SAMPLES, "poisoned": poisoned}
    text = write_text(folder / "text.txt")
    return make_run(folder / "run", text, mode, world, recipe=str(RECIPES / "counted"), options=options, **values)


def skips(store: RunStore) -> list[dict[str, Any]]:
    return [line for line in lines(store, "alert") if line["kind"] == "non_finite"]


def trained(store: RunStore, batch: int) -> list[float]:
    """How often the final weights, of independent ranks together, have seen each sample."""
    newest, _ = CheckpointStore(store.checkpoints).newest_valid()
    assert newest is not None
    ranks = sorted(newest.folder.glob("weights_rank*.safetensors"))
    if ranks:
        counts = sum(read(path)[0]["seen"] for path in ranks)
    else:
        counts = SavedState(newest.folder).weight("seen", torch.Size([SAMPLES]))
    return [float(count) for count in counts * batch]


def ledger(store: RunStore) -> LedgerFile:
    return read_state_file(store.ledger)


def numbers(ranges: list[list[int]]) -> set[int]:
    return {number for first, last in ranges for number in range(first, last + 1)}


def check_exactly_once(store: RunStore, world: int, mode: str) -> int:
    """Every sample is in the weights once, or listed as skipped; the step of the one batch that was skipped."""
    size = 4 if mode == "independent" else 4 * world
    file = ledger(store)
    (batch,) = file.skipped
    gone = numbers(batch.ranges)
    assert POISONED in gone and len(gone) == batch.samples == size
    assert trained(store, size) == [0.0 if number in gone else 1.0 for number in range(SAMPLES)]
    assert sum(chunk.samples for chunk in file.completed) == SAMPLES
    return batch.step


def check_modes(folder: Path, mode: str, world: int, settings: dict[str, Any]) -> None:
    """Undisturbed, killed in the step after the skipped one, and stopped after a checkpoint that holds the skip."""
    whole = counted(folder / "whole", mode, world, **settings)
    assert host(whole) == 0
    step = check_exactly_once(whole, world, mode)
    (alert,) = skips(whole)
    assert (alert["step"], alert["title"]) == (step, "A batch was skipped")
    assert POISONED in numbers(alert["suspects"]) and numbers(alert["suspects"]) <= numbers(alert["samples"])
    assert len(numbers(alert["suspects"])) == settings.get("batch_size", 4), "the micro-batch, of one rank"

    killed = counted(folder / "killed", mode, world, **settings)
    assert host(killed, f"mid_chunk@{step + 1}") != 0
    stopped = counted(folder / "stopped", mode, world, **settings)
    assert host(stopped, stop_at=step + 6) == 0
    for again in (killed, stopped):
        assert host(again) == 0
        assert check_exactly_once(again, world, mode) == step
        assert ledger(again).completed == ledger(whole).completed or mode == "independent"
        assert trained(again, 1) == trained(whole, 1)
    assert len(skips(stopped)) == 1, "it was not met again"


@pytest.mark.parametrize("name", MODES)
def test_a_batch_with_a_poisoned_sample_is_skipped_and_every_other_sample_trained_once(
    name: str, tmp_path: Path
) -> None:
    mode, world, settings = MODES[name]
    check_modes(tmp_path, mode, world, settings)


@needs_deepspeed
@pytest.mark.parametrize("stage", [1, 2, 3])
def test_deepspeed_skips_it_too(stage: int, tmp_path: Path) -> None:
    check_modes(tmp_path, "zero", 2, {"zero_stage": stage, "zero_engine": "deepspeed"})


def test_a_skipped_batch_leaves_buffers_and_loss_scale_as_they_were(tmp_path: Path) -> None:
    store = counted(tmp_path, "single", 1, precision="fp16")
    assert host(store) == 0
    newest, _ = CheckpointStore(store.checkpoints).newest_valid()
    assert newest is not None
    assert float(SavedState(newest.folder).weight("passes", torch.Size([]))) == SAMPLES / 4 - 1
    assert {line["loss_scale"] for line in lines(store, "step")} == {65536.0}


def test_more_batches_than_the_limit_end_the_run_which_resumes_with_a_higher_one(tmp_path: Path) -> None:
    store = counted(tmp_path, "ddp", 2, poisoned="7,133,250", non_finite_limit=2, max_restarts=3)
    assert host(store) == 1
    error = store.state().error
    assert error is not None and error["title"].endswith("The loss is not finite")
    assert "resumed: 2." in error["cause"] and "raise the limit" in error["next_step"]
    assert not lines(store, "restart"), "the same batch would come again"
    (line,) = lines(store, "non_finite")
    assert len(line["samples"]) and line["step"] > skips(store)[-1]["step"]
    store.run_toml.write_text(store.run_toml.read_text().replace("non_finite_limit = 2", "non_finite_limit = 9"))
    assert host(store) == 0
    assert len(ledger(store).skipped) == 3 and sum(trained(store, 8)) == SAMPLES - 24


@pytest.mark.parametrize(("mode", "world"), [("single", 1), ("ddp", 2), ("independent", 2)])
def test_stop_ends_the_run_with_the_batch_named(mode: str, world: int, tmp_path: Path) -> None:
    store = counted(tmp_path, mode, world, non_finite="stop", strict=False)
    assert host(store) == 1
    error = store.state().error
    assert error is not None and "133" in error["cause"] and "not finite" in error["cause"]
    assert not skips(store) and not ledger(store).skipped and not lines(store, "fallback")
    assert set(trained(store, 4 * world if mode == "ddp" else 4)) == {0.0, 1.0}


def test_a_run_that_stops_in_its_very_first_step_does_not_fall_back(tmp_path: Path) -> None:
    poisoned = ",".join(map(str, range(SAMPLES)))
    store = counted(tmp_path, "ddp", 2, poisoned=poisoned, non_finite="stop", strict=False)
    assert host(store) == 1
    assert not lines(store, "fallback") and len(lines(store, "launch")) == 1


def diverging(folder: Path, mode: str, world: int, options: dict[str, Any], **settings: Any) -> RunStore:
    """A run of 40 steps with a checkpoint every 10, whose loss is NaN in some of them where the rate is above 0.5."""
    folder.mkdir(exist_ok=True)
    values = {"steps": 40, "checkpoint_every_steps": 10, "eval_every": 1000, "lr": 1.0, **settings}
    text = write_text(folder / "text.txt")
    return make_run(folder / "run", text, mode, world, recipe=str(RECIPES / "diverging"), options=options, **values)


@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize("mode", ["single", "independent"])
def test_a_norm_that_is_read_a_step_late_leaves_the_same_run(mode: str, stopped: bool, tmp_path: Path) -> None:
    """Also where the batch is in the last step before a checkpoint, the first after it, or the last of the run."""
    runs = []
    for buffers in (False, True):  # a model with buffers has its norm read at once
        options = {"bad_from": 30, "bad_until": 31, "buffers": buffers}
        store = diverging(tmp_path / str(buffers), mode, 1 if mode == "single" else 2, options)
        if stopped:
            assert host(store, stop_at=33) == 0
        assert host(store) == 0
        newest, _ = CheckpointStore(store.checkpoints).newest_valid()
        assert newest is not None
        weights = [read(path)[0]["weight"].tolist() for path in sorted(newest.folder.glob("weights*"))]
        lists = [(batch.step, batch.ranges) for batch in ledger(store).skipped]
        alerts = [(line["step"], line["samples"], line["suspects"]) for line in skips(store)]
        runs.append((weights, sorted(lists), sorted(alerts)))
    assert runs[0] == runs[1]
    assert {step for step, *_ in runs[0][2]} == {30, 31}
