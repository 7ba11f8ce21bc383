"""The next run of a model on a device begins with the micro-batch that was left there when memory ran out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.config import RunConfig
from core.config.batch import Batch, resolve_batch
from core.launch.micro_batch_memory import (
    FILE,
    RememberedBatch,
    as_remembered,
    in_micro_batches,
    remember,
    remembered_batch,
)
from core.launch.resolved import ResolvedRun
from core.machine.devices import Device
from tests.helpers.resolved_run import resolved_run

pytestmark = pytest.mark.windows


def run(mode: str = "ddp", world: int = 2, **settings: Any) -> ResolvedRun:
    return resolved_run(RunConfig(**{"batch_size": 8, "steps": 10, **settings}), mode, world)


def test_the_same_model_on_the_same_device_begins_with_what_fitted(tmp_path: Path) -> None:
    file = tmp_path / FILE
    assert as_remembered(file, run()) == run()
    remember(file, run(), 4, [1])
    for again in (run(), run(lr=0.5, seed=7)):
        smaller = as_remembered(file, again)
        assert smaller.batch == Batch(4, 2, 2, 16) and smaller.config.batch_size == 4
        assert smaller.device_notes[-1].startswith("Micro-batch 4 × accumulation 2 instead of 8 × 1")
    remember(file, run(), 2, [1])
    assert as_remembered(file, run()).batch.micro == 2
    fits = run(batch_size=2, grad_accum_steps=4)
    assert as_remembered(file, fits) == fits
    whole = run(batch_size=None, global_batch_size=24)
    assert as_remembered(file, whole).batch == Batch(1, 2, 12, 24), "the micro-batch was not chosen"


def test_a_micro_batch_that_a_person_chose_is_kept_with_a_note(tmp_path: Path) -> None:
    file = tmp_path / FILE
    remember(file, run(), 4, [1])
    chosen = run(batch_size=16, keep_micro_batch=True)
    kept = as_remembered(file, chosen)
    assert (kept.batch, kept.config) == (chosen.batch, chosen.config)
    assert kept.device_notes[-1].startswith("Memory ran out with more than micro-batch 4 when this model")
    assert "Micro-batch 4 × accumulation 4 fitted" in kept.device_notes[-1]
    assert remembered_batch(file, chosen) == RememberedBatch(Batch(4, 2, 4, 32), chosen.batch, is_chosen=True)
    assert remembered_batch(file, run(batch_size=4)) is None and as_remembered(file, run(batch_size=3)) == run(
        batch_size=3
    )


def test_a_micro_batch_that_a_person_set_is_kept_although_it_is_the_recipes_own(tmp_path: Path) -> None:
    file = tmp_path / FILE
    remember(file, run(), 4, [1])
    typed = run(keep_micro_batch=True)
    assert typed.batch == run().batch
    kept = as_remembered(file, typed)
    assert (kept.batch, kept.config) == (typed.batch, typed.config)
    assert "The run keeps your 8 × 1" in kept.device_notes[-1]


def test_smaller_micro_batches_leave_the_global_batch_as_it_was() -> None:
    for config in (RunConfig(batch_size=8, grad_accum_steps=3), RunConfig(global_batch_size=48)):
        smaller = in_micro_batches(config, resolve_batch(config, 2), 4)
        assert resolve_batch(smaller, 2) == Batch(4, 2, 6, 48)


@pytest.mark.parametrize("other", [run(seq_len=64), run(precision="fp32"), run("single", 1), run("zero")])
def test_another_model_or_mode_is_another_matter(other: ResolvedRun, tmp_path: Path) -> None:
    remember(tmp_path / FILE, run(), 4, [0, 1])
    assert as_remembered(tmp_path / FILE, other) == other


def test_the_other_device_is_not_at_fault(tmp_path: Path) -> None:
    alone = run("single", 1)
    remember(tmp_path / FILE, alone, 4, [0])
    assert as_remembered(tmp_path / FILE, alone).batch.micro == 4
    elsewhere = replace(alone, devices=(Device("cpu:1", "cpu", 1, "CPU 1"),))
    assert as_remembered(tmp_path / FILE, elsewhere) == elsewhere


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"format": "else"}', b'{"format": "rankdeck-micro-batches", "version": 9}']
)
def test_a_file_that_cannot_be_read_changes_nothing(content: bytes, tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(content)
    assert as_remembered(tmp_path / FILE, run()) == run()
    remember(tmp_path / FILE, run(), 4, [0])
    assert as_remembered(tmp_path / FILE, run()).batch.micro == 4
    remember(tmp_path / "not there" / FILE, run(), 4, [0])


def test_deepspeed_settings_of_a_persons_own_stay(tmp_path: Path) -> None:
    zero = run("zero")
    choice, config = replace(zero.choice, engine="deepspeed"), zero.config.replace(deepspeed_config="{}")
    own = replace(zero, choice=choice, config=config)
    remember(tmp_path / FILE, own, 4, [0])
    assert as_remembered(tmp_path / FILE, own) == own
