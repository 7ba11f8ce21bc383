"""Out of memory: the step is done again in smaller micro-batches, exactly; or the run restarts so."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="trains for real")

from core.checkpoints.store import CheckpointStore
from core.ledger.ledger import Ledger
from core.ledger.state_file import read_state_file
from core.run_folder.store import RunStore
from tests.helpers.deepspeed_here import needs_deepspeed
from tests.helpers.forking import ROOT
from tests.helpers.hosted_run import host, lines, make_run, write_text
from workers.state_files.safetensors_files import read

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
STEPS = 24
FIRST_SHORT = 13
ZERO = {"zero_engine": "torch"}
IN_PLACE: dict[str, tuple[str, int, dict[str, Any]]] = {
    "single": ("single", 1, {}),
    "single, in the backward pass": ("single", 1, {"options": {"where": "backward"}}),
    "single, fp16": ("single", 1, {"precision": "fp16"}),
    "ddp": ("ddp", 2, {}),
    "ddp over gloo": ("ddp", 2, {"gradient_exchange": "plain"}),
    "ddp, the first of two micro-batches": ("ddp", 2, {"batch_size": 6, "grad_accum_steps": 2, "options": {"most": 5}}),
    "zero 1": ("zero", 2, {"zero_stage": 1, **ZERO}),
    "independent": ("independent", 2, {"merge_policy": "none"}),
}
RESTARTED: dict[str, tuple[str, int, dict[str, Any]]] = {
    "ddp, in the backward pass": ("ddp", 2, {"options": {"where": "backward"}}),
    "ddp, after the buffers are sent": ("ddp", 2, {"options": {"buffers": 1}}),
    "zero 2": ("zero", 2, {"zero_stage": 2, **ZERO}),
    "fsdp": ("fsdp", 2, {}),
    "single, in the update": ("single", 1, {"options": {"where": "update"}}),
}


def short(folder: Path, mode: str, world: int, **settings: Any) -> RunStore:
    """A run whose last rank has no memory for micro-batches of 8 from step 13 on."""
    folder.mkdir(exist_ok=True)
    options = {"short_from": FIRST_SHORT, "short_rank": world - 1, **settings.pop("options", {})}
    values = {"steps": STEPS, "checkpoint_every_steps": 6, "batch_size": 8, "keep_checkpoints": 50, **settings}
    text = write_text(folder / "text.txt")
    recipe = str(ROOT / "tests" / "helpers" / "recipes" / "memory")
    return make_run(folder / "run", text, mode, world, recipe=recipe, options=options, **values)


def changed(store: RunStore, **settings: Any) -> RunStore:
    """The run with other settings, as a resume would have them."""
    from core.config.config_file import to_toml

    store.run_toml.write_text(to_toml(store.config().replace(**settings)), encoding="utf-8")
    return store


def smaller_from(folder: Path, step: int, mode: str, world: int, **settings: Any) -> RunStore:
    """A run that never lacks memory, in the smaller micro-batches from after `step` on."""
    options = {**settings.pop("options", {}), "short_from": 10**6}
    store = short(folder, mode, world, options=options, **{**settings, "steps": step})
    assert host(store) == 0
    micro, accumulation = settings.get("batch_size", 8) // 2, 2 * settings.get("grad_accum_steps", 1)
    changed(store, steps=STEPS, batch_size=micro, grad_accum_steps=accumulation)
    assert host(store) == 0
    return store


def state(store: RunStore) -> dict[str, list[Any]]:
    """All weights and optimizer states of the last checkpoint, by file and name."""
    newest, _ = CheckpointStore(store.checkpoints).newest_valid()
    assert newest is not None and newest.step == STEPS
    files = sorted([*newest.folder.glob("weights*.safetensors"), *newest.folder.glob("optimizer*.safetensors")])
    assert files
    return {f"{file.name} {name}": tensor.tolist() for file in files for name, tensor in read(file)[0].items()}


def alerts(store: RunStore) -> list[dict[str, Any]]:
    return [line for line in lines(store, "alert") if line["kind"] == "out_of_memory"]


def samples_trained(store: RunStore) -> int:
    return Ledger.from_file(read_state_file(store.ledger)).samples_trained


@pytest.mark.parametrize("name", IN_PLACE)
def test_the_step_is_done_again_with_the_weights_that_the_smaller_micro_batch_gives(name: str, tmp_path: Path) -> None:
    mode, world, settings = IN_PLACE[name]
    store = short(tmp_path / "short", mode, world, **settings)
    assert host(store) == 0
    was = settings.get("batch_size", 8)
    (alert,) = alerts(store)
    assert (alert["step"], alert["ranks"], alert["micro_batch"]) == (FIRST_SHORT, [world - 1], was // 2)
    assert f"with micro-batch {was}." in alert["cause"] and alert["title"] == "The micro-batch was made smaller"
    assert len(lines(store, "launch")) == 1, "in place"
    charted = {line["step"]: line.get("micro_batch") for line in lines(store, "step") if line["rank"] == world - 1}
    assert charted == {step: was // 2 if step >= FIRST_SHORT else None for step in range(1, STEPS + 1)}
    assert (store.config().batch_size, store.config().grad_accum_steps) == (was // 2, alert["grad_accum_steps"])

    reference = smaller_from(tmp_path / "reference", FIRST_SHORT - 1, mode, world, **settings)
    theirs, ours = state(reference), state(store)
    if mode == "independent":  # the other rank has memory enough, and stays as it was
        theirs, ours = ({k: v for k, v in held.items() if "rank1" in k} for held in (theirs, ours))
    assert theirs == ours
    samples = STEPS * world * was * settings.get("grad_accum_steps", 1)
    assert samples_trained(store) == samples_trained(reference) == samples


@pytest.mark.parametrize("name", RESTARTED)
def test_where_ranks_wait_already_the_run_restarts_with_the_smaller_micro_batch(name: str, tmp_path: Path) -> None:
    mode, world, settings = RESTARTED[name]
    check_restart(tmp_path, mode, world, settings)


@needs_deepspeed
@pytest.mark.parametrize("stage", [1, 3])
def test_under_deepspeed_the_run_restarts(stage: int, tmp_path: Path) -> None:
    check_restart(tmp_path, "zero", 2, {"zero_stage": stage, "zero_engine": "deepspeed"})


def check_restart(folder: Path, mode: str, world: int, settings: dict[str, Any]) -> None:
    """From the last checkpoint, with the weights that the smaller micro-batch gives from there on."""
    store = short(folder / "short", mode, world, **settings)
    assert host(store) == 0
    (alert,) = alerts(store)
    assert (alert["ranks"], alert["micro_batch"], alert["grad_accum_steps"]) == ([world - 1], 4, 2)
    assert "with micro-batch 8." in alert["cause"] and alert["title"].startswith("The run restarted")
    first, second = lines(store, "launch")
    assert first["mode"] == second["mode"] == mode and not lines(store, "restart")
    (again,) = set(second["resumed_from"].values())
    assert again in (6, 12), "a slow disk may still be busy with the first at step 12"
    assert (store.config().batch_size, store.config().grad_accum_steps) == (4, 2)
    reference = smaller_from(folder / "reference", again, mode, world, **settings)
    assert state(reference) == state(store)
    assert samples_trained(store) == STEPS * 8 * world


def test_a_run_that_is_killed_after_it_resumes_to_the_same_weights(tmp_path: Path) -> None:
    whole, killed = short(tmp_path / "whole", "ddp", 2), short(tmp_path / "killed", "ddp", 2)
    assert host(whole) == 0
    assert host(killed, "mid_chunk@20") != 0
    assert host(killed) == 0
    assert state(killed) == state(whole) and samples_trained(killed) == STEPS * 16


def test_micro_batches_are_halved_three_times_at_most(tmp_path: Path) -> None:
    store = short(tmp_path, "ddp", 2, batch_size=16, options={"most": 1}, max_restarts=3, strict=False)
    assert host(store) == 1
    assert [alert["micro_batch"] for alert in alerts(store)] == [8, 4, 2]
    assert len(lines(store, "launch")) == 1 and store.config().batch_size == 2
    error = store.state().error
    assert error is not None and error["title"] == "CPU 1: The device ran out of memory"
    assert "with micro-batch 2. Halvings so far: 3." in error["cause"]
    assert "Shorten the sequence" in error["next_step"]


def test_in_place_and_by_restarts_together_it_is_halved_three_times_at_most(tmp_path: Path) -> None:
    store = short(tmp_path, "fsdp", 2, batch_size=16, options={"most": 1}, strict=False)
    assert host(store) == 1
    assert [alert["micro_batch"] for alert in alerts(store)] == [8, 4, 2]
    assert len(lines(store, "launch")) == 4 and not lines(store, "fallback")


def test_a_micro_batch_of_one_is_not_made_smaller(tmp_path: Path) -> None:
    store = short(tmp_path, "single", 1, batch_size=1, grad_accum_steps=2, options={"most": 0}, max_restarts=2)
    assert host(store) == 1
    assert not alerts(store) and not lines(store, "restart")
    error = store.state().error
    assert error is not None and "Memory ran out at step 13 with micro-batch 1." in error["cause"]


@pytest.mark.skipif(sys.platform != "linux", reason="a limit that the system enforces")
def test_memory_that_the_system_refuses_counts_too(tmp_path: Path) -> None:
    store = short(tmp_path / "short", "single", 1, options={"where": "limit"})
    assert host(store) == 0
    (alert,) = alerts(store)
    assert (alert["step"], alert["micro_batch"]) == (FIRST_SHORT, 4)
    assert state(store) == state(smaller_from(tmp_path / "reference", FIRST_SHORT - 1, "single", 1))
