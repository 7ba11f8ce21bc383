"""Memory strip as text."""

from __future__ import annotations

from dataclasses import replace

from app.state.memory_text import NO_BREAK, ON_EACH, TIMING, memory_text, unknown_text
from core.config import RunConfig
from core.config.mode import Mode
from core.errors import ConfigError
from core.estimate.estimate import estimate_run
from core.estimate.free import Free
from core.estimate.overview import overview
from core.estimate.speed import NO_LINK, TimeFigures
from core.estimate.step_figures import StepFigures
from core.probes.sync_cost import Link
from tests.helpers.resolved_run import resolved_run
from tests.unit.core.estimate.made import BASELINES, FIGURES, MB, figures

CONFIG = RunConfig(batch_size=8, steps=3, precision="fp32")
RUN = resolved_run(CONFIG, Mode.DDP, 2)
MUCH = Free(ram=100_000 * MB, disk=50_000 * MB)


def test_a_run_that_fits_says_so_for_each_device() -> None:
    text = memory_text(overview(RUN, FIGURES, BASELINES, MUCH))
    assert (text.verdict, text.tone, text.remedies) == ("Fits", "success", ())
    assert text.devices.replace(NO_BREAK, " ") == "CPU 0 0.82 GiB of 92 GiB · CPU 1 0.82 GiB of 92 GiB"
    assert [line.name for line in text.modes] == [
        "One device", "DDP", "ZeRO 1", "ZeRO 2", "ZeRO 3", "FSDP", "Parallel-independent",
    ]  # fmt: skip
    (chosen,) = (line for line in text.modes if line.is_chosen)
    assert (chosen.name, chosen.need, chosen.verdict) == ("DDP", "0.82 GiB", "Fits")
    assert "Weights: 95 MiB\nGradients: 95 MiB" in chosen.parts
    assert text.totals == (
        "Memory of this computer: 1.6 GiB of 93 GiB free",
        "Checkpoints: 1.2 GB (4 × 300 MB) of 50 GB free",
    )


def test_what_does_not_fit_comes_with_remedies() -> None:
    need = estimate_run(RUN, FIGURES, BASELINES, Free()).host_bytes
    text = memory_text(overview(RUN, FIGURES, BASELINES, Free(ram=need - MB)))
    assert (text.verdict, text.tone) == ("Does not fit", "error")
    smaller, narrow, *_ = text.remedies
    assert smaller.label == "Micro-batch 4 × 2"
    assert smaller.tip == "Micro-batch 4, accumulation 2 (the global batch stays): 0.71 GiB on a device"
    assert smaller.changes == {"batch_size": 4, "grad_accum_steps": 2}
    assert narrow.tip == "Precision bf16: measured once it is chosen"


def test_without_measured_passes_the_activations_are_not_zero_but_unknown() -> None:
    text = memory_text(overview(RUN, figures(step_lines=None, note="It took too long."), BASELINES, MUCH))
    assert (text.verdict, text.note) == ("Memory not known", "It took too long.")
    assert "Activations: –" in text.modes[1].parts


def test_a_mode_that_cannot_be_used_says_why() -> None:
    text = memory_text(overview(resolved_run(CONFIG, Mode.SINGLE, 1), FIGURES, BASELINES, MUCH))
    assert (text.modes[1].need, text.modes[1].verdict) == ("", "–")
    assert text.modes[1].parts == "It needs at least two devices."


def test_windows_promises_memory_too() -> None:
    run = replace(RUN, platform=replace(RUN.platform, name="windows"))
    text = memory_text(overview(run, FIGURES, BASELINES, replace(MUCH, commit=200_000 * MB)))
    assert text.totals[1] == "With the page file: 1.6 GiB of 186 GiB free"


def test_an_error_is_a_note() -> None:
    text = unknown_text(ConfigError("dataset_file", "There is no such file.", "Choose another file."))
    assert (text.verdict, text.note) == ("Memory not known", "There is no such file. Choose another file.")


def test_time_stands_beside_memory_once_it_is_measured() -> None:
    assert memory_text(overview(RUN, FIGURES, BASELINES, MUCH), is_timing=True).time == TIMING
    steps = StepFigures(4, 8, pass_s=1.08, update_s=0.1, tokens_per_sample=100)
    alone = replace(steps, threads=8, pass_s=0.9)
    link = Link(500.0, 0.0, 2, "gloo", 5000.0)
    run = resolved_run(CONFIG.replace(steps=3600), Mode.DDP, 2)
    found = TimeFigures({("cpu", 8, 1): alone, ("cpu", 4, 2): steps}, link)
    text = memory_text(overview(run, FIGURES, BASELINES, MUCH, found))
    assert text.time.replace(NO_BREAK, " ") == "1.20 s a step · 1.7 × one device · 1.2 h"
    assert text.advice == "Use both devices in DDP: 1.7 × predicted, 0.80 h less."
    lines = {line.name: line for line in text.modes}
    assert lines["One device"].time.replace(NO_BREAK, " ") == "2.0 h"
    assert lines["DDP"].time.replace(NO_BREAK, " ") == "1.7 × · 1.2 h"
    parts = lines["DDP"].parts
    assert "Of that in the exchange: 20.0 ms\nSent by each device: 100 MB\nSpeed: 1,333 tok/s" in parts
    unmeasured = memory_text(overview(run, FIGURES, BASELINES, MUCH, TimeFigures(found.steps)))
    assert unmeasured.time == "" and unmeasured.advice == NO_LINK


def test_of_several_machines_it_is_this_computers_part() -> None:
    made = overview(resolved_run(CONFIG, Mode.DDP, 4), FIGURES, BASELINES, replace(MUCH, machines=2))
    text = memory_text(made)
    assert [part.split(NO_BREAK)[:2] for part in text.devices.split(" · ")] == [["CPU", "0"], ["CPU", "1"]]
    assert text.note == ON_EACH and text.time == ""
    short = memory_text(overview(made.run, FIGURES, BASELINES, Free(ram=MB, machines=2)))
    assert short.verdict == "Does not fit" and not any("devices" in one.changes for one in short.remedies)
