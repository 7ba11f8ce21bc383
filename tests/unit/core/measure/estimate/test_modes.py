"""A run in every mode side by side."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.config import RunConfig
from core.config.mode import Mode
from core.measure.estimate.free import Free
from core.measure.estimate.modes import estimate_modes, estimate_run, run_layout
from tests.helpers.resolved_run import resolved_run
from tests.unit.core.measure.estimate.made import BASELINES, FIGURES, MB, figures

CONFIG = RunConfig(batch_size=4, steps=3)
MUCH = Free(ram=10_000 * MB)


def test_all_modes_stand_beside_each_other() -> None:
    made = {
        mode.variant.name: mode for mode in estimate_modes(resolved_run(CONFIG, Mode.DDP, 2), FIGURES, BASELINES, MUCH)
    }
    assert list(made) == ["single", "ddp", "zero1", "zero2", "zero3", "fsdp", "independent"]
    assert [len(mode.devices) for mode in made.values()] == [1, 2, 2, 2, 2, 2, 2]
    assert {mode.verdict for mode in made.values()} == {"fits"}
    assert made["zero3"].largest == made["fsdp"].largest  # PyTorch's own engine, as DeepSpeed is not there
    assert made["ddp"].host_bytes == sum(need.memory.total for need in made["ddp"].devices)
    assert made["ddp"].disk_bytes == 4 * 300 * MB  # three and the best one


def test_on_one_device_the_other_modes_say_why_not() -> None:
    made = {
        mode.variant.name: mode
        for mode in estimate_modes(resolved_run(CONFIG, Mode.SINGLE, 1), FIGURES, BASELINES, MUCH)
    }
    assert made["single"].reason == ""
    assert made["ddp"].sentence() == "It needs at least two devices."
    assert made["fsdp"].reason


def test_ranks_share_the_machines_memory() -> None:
    run = resolved_run(CONFIG, Mode.DDP, 2)
    need = estimate_run(run, FIGURES, BASELINES, MUCH).host_bytes
    tight = estimate_run(run, FIGURES, BASELINES, Free(ram=need + MB))
    assert tight.verdict == "tight"
    short = estimate_run(run, FIGURES, BASELINES, Free(ram=need - MB))
    assert (short.verdict, short.sentence()) == ("too_large", "Does not fit on CPU 0 and CPU 1.")


def test_on_windows_the_commit_charge_counts_too() -> None:
    run = resolved_run(CONFIG, Mode.DDP, 2)
    run = replace(run, platform=replace(run.platform, name="windows"))
    bare = replace(BASELINES, extra_commit_bytes={"ddp": 50 * MB})
    made = estimate_run(run, FIGURES, bare, Free(ram=10_000 * MB, commit=10_000 * MB))
    assert (made.verdict, made.commit_bytes) == ("fits", made.host_bytes + 100 * MB)
    made = estimate_run(run, FIGURES, bare, Free(ram=10_000 * MB, commit=made.host_bytes))
    assert (made.verdict, made.sentence()) == ("too_large", "Does not fit in memory and page file.")


def test_without_measured_passes_only_what_is_too_large_is_known() -> None:
    run, unmeasured = resolved_run(CONFIG, Mode.DDP, 2), figures(step_lines=None, added_lines=None)
    assert estimate_run(run, unmeasured, BASELINES, MUCH).verdict == "unknown"
    assert estimate_run(run, unmeasured, BASELINES, Free(ram=MB)).verdict == "too_large"


@pytest.mark.parametrize(
    ("changes", "beside"),
    [
        ({"steps": 3}, False),
        ({"steps": 50}, True),  # 20 s where nothing else runs, and a minute beside other programs
        ({"steps": 1000}, True),  # 400 s, and a checkpoint after the first minute
        ({"steps": 1000, "checkpoint_every_s": None}, False),
        ({"steps": 3, "checkpoint_every_steps": 2}, True),
        ({"steps": 3, "checkpoint_every_steps": 3}, False),
    ],
)
def test_a_checkpoint_beside_steps(changes: dict[str, int], beside: bool) -> None:
    run = resolved_run(CONFIG.replace(**changes), Mode.SINGLE, 1)
    assert run_layout(run, FIGURES).saves_beside is beside


def test_synchronising_ranks_keep_copies_and_do_not_merge() -> None:
    alone = run_layout(resolved_run(CONFIG, Mode.INDEPENDENT, 2), FIGURES)
    together = run_layout(resolved_run(CONFIG.replace(sync_every=50), Mode.INDEPENDENT, 2), FIGURES)
    assert (alone.merges, alone.outer_copies) == (True, 0)
    assert (together.merges, together.outer_copies) == (False, 3)


def test_plain_all_reduce_shares_no_memory() -> None:
    assert run_layout(resolved_run(CONFIG, Mode.DDP, 2), FIGURES).shared_memory
    plain = resolved_run(CONFIG.replace(gradient_exchange="plain"), Mode.DDP, 2)
    assert not run_layout(plain, FIGURES).shared_memory
