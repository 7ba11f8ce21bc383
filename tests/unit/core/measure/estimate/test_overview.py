"""Overview of an estimate, and its advice."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from core.config import RunConfig
from core.config.mode import Mode
from core.launch.resolved import ResolvedRun
from core.machine.devices import Device
from core.measure.estimate.free import Free
from core.measure.estimate.modes import estimate_modes, estimate_run
from core.measure.estimate.overview import USUAL_CONTEXT_NOTE, advice, fit_note, hours_text, overview
from core.measure.estimate.speed import NO_LINK, NO_STEP, StepFigures, TimeFigures, estimate_times
from core.measure.link import Link
from core.recipes.catalog import get_recipe
from core.recipes.manifest import recipe_defaults
from tests.helpers.resolved_run import resolved_run
from tests.unit.core.measure.estimate.made import BASELINES, CONFIG, FIGURES, FOUND, MB, MUCH, RUN, figures


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


def advised(run: ResolvedRun = RUN, found: TimeFigures = FOUND, free: Free = MUCH) -> str:
    modes = estimate_modes(run, FIGURES, BASELINES, free)
    return advice(run, modes, estimate_times(run, FIGURES, found))


def test_advice_is_made_of_the_figures() -> None:
    assert advised() == "Use both devices in DDP: 1.7 × predicted, 0.80 h less."
    assert advised(resolved_run(CONFIG, Mode.SINGLE, 1)) == ""
    near = replace(FOUND, link=Link(150.0, 0.0, 2, "gloo"))
    assert advised(found=near) == (
        "Use one device: both devices in DDP are about as fast (1.1 × predicted, give or take 20\N{NO-BREAK SPACE}%)."
    )
    slow = replace(FOUND, link=Link(50.0, 0.0, 2, "gloo"))
    assert advised(found=slow) == "Use one device: both devices in DDP are not faster (0.63 × predicted)."
    run = resolved_run(CONFIG, Mode.INDEPENDENT, 2)
    assert advised(run).startswith("Use both devices in parallel-independent: 1.7 ×")
    assert advised(found=TimeFigures()) == NO_STEP
    assert advised(found=replace(FOUND, link=None)) == NO_LINK


def test_a_model_that_does_not_fit_one_device_needs_them_all() -> None:
    cards = (Device("GPU-a", "cuda", 0, "Card"), Device("GPU-b", "cuda", 1, "Card"))
    run, little = replace(RUN, devices=cards), figures(step_lines=((100 * MB, 0),), added_lines=((0, 2 * MB),))
    found = TimeFigures(
        dict.fromkeys((("Card", 0, 1), ("Card", 0, 2)), StepFigures(8, pass_s=0.9, update_s=0.1)),
        Link(20.0, 0.0, 2, "gloo"),
    )
    needs = {mode.variant.name: mode.largest for mode in estimate_modes(run, little, BASELINES, MUCH)}
    assert needs["fsdp"] < needs["single"]
    tight = replace(MUCH, devices=dict.fromkeys(("GPU-a", "GPU-b"), needs["single"] - MB))
    modes, costs = estimate_modes(run, little, BASELINES, tight), estimate_times(run, little, found)
    text = advice(run, modes, costs)
    assert text.startswith("Use both cards in ") and "since the model does not fit one: 0." in text


def test_hours_are_written_as_people_plan() -> None:
    assert [hours_text(hours) for hours in (12.3, 0.43, 0.05, 0.01)] == ["12 h", "0.43 h", "3.0 min", "36 s"]
