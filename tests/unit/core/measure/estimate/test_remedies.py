"""What would make a run fit."""

from __future__ import annotations

from core.config import RunConfig
from core.config.mode import Mode
from core.measure.estimate.free import Free
from core.measure.estimate.modes import estimate_run
from core.measure.estimate.remedies import remedies
from tests.helpers.resolved_run import resolved_run
from tests.unit.core.measure.estimate.made import BASELINES, FIGURES, MB

CONFIG = RunConfig(batch_size=8, steps=3, precision="fp32")


def test_a_run_that_fits_needs_none() -> None:
    assert remedies(resolved_run(CONFIG, Mode.DDP, 2), FIGURES, BASELINES, Free(ram=10_000 * MB)) == ()


def test_a_smaller_micro_batch_keeps_the_global_batch_and_really_fits() -> None:
    run = resolved_run(CONFIG, Mode.DDP, 2)
    free = Free(ram=estimate_run(run, FIGURES, BASELINES, Free()).host_bytes)
    found = {remedy.kind: remedy for remedy in remedies(run, FIGURES, BASELINES, free)}
    smaller = found["micro_batch"]
    changed = resolved_run(CONFIG.replace(**smaller.changes), Mode.DDP, 2)
    assert changed.batch.global_ == run.batch.global_
    made = estimate_run(changed, FIGURES, BASELINES, free)
    assert (made.verdict, made.largest) == ("fits", smaller.bytes)
    assert (smaller.changes["batch_size"], smaller.changes["grad_accum_steps"]) == (4, 2)


def test_what_another_probe_must_tell_comes_without_figures() -> None:
    run = resolved_run(CONFIG, Mode.DDP, 2)
    found = {remedy.kind: remedy for remedy in remedies(run, FIGURES, BASELINES, Free(ram=MB))}
    assert found["precision"].bytes is None
    assert not {"micro_batch", "mode", "devices"} & found.keys()  # nothing fits into a megabyte


def test_a_sharding_mode_and_fewer_devices() -> None:
    run = resolved_run(CONFIG.replace(batch_size=1), Mode.DDP, 2)
    need = estimate_run(run, FIGURES, BASELINES, Free()).host_bytes
    found = {remedy.kind: remedy for remedy in remedies(run, FIGURES, BASELINES, Free(ram=need))}
    assert found["mode"].changes == {"mode": "fsdp"} or found["mode"].changes["mode"] == "zero"
    assert found["mode"].verdict == "fits"
    assert found["devices"].changes["devices"] == ["cpu:0"]
