"""Overview of an estimate."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from core.config import RunConfig
from core.config.batch import Batch
from core.config.mode import Mode
from core.estimate.estimate import estimate_run
from core.estimate.free import Free
from core.estimate.overview import USUAL_CONTEXT_NOTE, fit_note, overview
from core.launch.micro_batch_memory import RememberedBatch
from core.machine.devices import Device
from core.recipes.catalog import get_recipe
from core.recipes.manifest import recipe_defaults
from tests.helpers.resolved_run import resolved_run
from tests.unit.core.estimate.made import BASELINES, FIGURES, MB

CONFIG = RunConfig(batch_size=8, steps=3, precision="fp32")


def test_what_was_left_when_memory_ran_out_is_offered_though_it_should_fit() -> None:
    run, much = resolved_run(CONFIG, Mode.DDP, 2), Free(ram=100_000 * MB, disk=50_000 * MB)
    assert overview(run, FIGURES, BASELINES, much).remedies == ()
    kept = RememberedBatch(Batch.of(4, 2, 2), run.batch, is_chosen=True)
    (remedy,) = overview(run, FIGURES, BASELINES, much, kept=kept).remedies
    assert (remedy.label, remedy.changes) == ("Micro-batch 4 × 2", {"batch_size": 4, "grad_accum_steps": 2})
    assert remedy.bytes is not None and remedy.bytes < estimate_run(run, FIGURES, BASELINES, much).largest


def test_all_that_is_shown_as_json() -> None:
    run = resolved_run(CONFIG, Mode.DDP, 2)
    need = estimate_run(run, FIGURES, BASELINES, Free()).host_bytes
    shown = json.loads(json.dumps(overview(run, FIGURES, BASELINES, Free(ram=need - MB, disk=5 * MB)).as_dict()))
    assert (shown["mode"], shown["devices"], shown["parameters"]) == ("ddp", ["cpu:0", "cpu:1"], 25 * MB)
    assert shown["free"] == {"ram_bytes": need - MB, "commit_bytes": None, "disk_bytes": 5 * MB}
    by_mode = {mode["mode"]: mode for mode in shown["modes"]}
    chosen = by_mode["ddp"]
    assert (chosen["verdict"], chosen["sentence"]) == ("too_large", "Does not fit on CPU 0 and CPU 1.")
    assert chosen["predicted_bytes"] == max(device["total_bytes"] for device in chosen["devices"])
    parts = ("parameters", "gradients", "optimizer", "activations", "communication", "copy", "framework", "allocator")
    for device in chosen["devices"]:
        assert sum(device[f"{part}_bytes"] for part in parts) == device["total_bytes"]
    assert [remedy["kind"] for remedy in shown["remedies"]] == ["micro_batch", "precision", "devices"]


def test_a_mode_that_cannot_be_used_says_why() -> None:
    shown = overview(resolved_run(CONFIG, Mode.SINGLE, 1), FIGURES, BASELINES, Free()).as_dict()
    assert {"mode": "ddp", "reason": "It needs at least two devices."} in shown["modes"]


def test_the_command_line_notes_what_cannot_fit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RANKDECK_HOME", str(tmp_path))
    recipe = get_recipe("minigpt")
    options = {**RunConfig(**recipe_defaults(recipe)).options, "n_layer": 128, "n_embd": 16384, "n_head": 128}
    run = resolved_run(CONFIG, Mode.SINGLE, 1)
    run = replace(run, recipe=recipe, config=run.config.replace(options=options))
    note = fit_note(run, Free(ram=20 << 30))
    assert note == "The run probably does not fit in this computer's memory: it needs 6.6 TB, 20 GiB free."
    assert fit_note(run, Free(ram=20 << 40)) == "" and fit_note(run, Free()) == "", "nothing rather than a guess"


def test_it_says_that_the_context_of_a_gpu_is_assumed() -> None:
    on_cpu = resolved_run(CONFIG, Mode.SINGLE, 1)
    on_gpu = replace(on_cpu, devices=(Device("GPU-a", "cuda", 0, "H200"),))
    assert overview(on_cpu, FIGURES, BASELINES, Free()).as_dict()["note"] == ""
    assert overview(on_gpu, FIGURES, BASELINES, Free()).as_dict()["note"] == USUAL_CONTEXT_NOTE
    assert overview(on_gpu, replace(FIGURES, step_lines=None), BASELINES, Free()).note == "", "nothing was measured"
    known = replace(FIGURES, context_bytes=500 * MB, note="The activations are unknown.")
    assert overview(on_gpu, known, BASELINES, Free()).note == known.note
