"""Memory strip as text."""

from __future__ import annotations

from dataclasses import replace

from app.draft.memory_text import NO_BREAK, TIMING, Timed, balance_text, memory_text, unknown_text
from core.config import RunConfig
from core.config.mode import Mode
from core.errors import ConfigError
from core.machine.devices import Device
from core.measure.estimate.figures import Baselines, least_figures
from core.measure.estimate.free import Free
from core.measure.estimate.modes import estimate_run
from core.measure.estimate.overview import overview
from core.measure.estimate.speed import NO_LINK, BalanceGain, StepFigures, TimeFigures
from core.measure.link import Link
from core.recipes.parameter_formula import ModelSize, ParameterCount
from tests.helpers.resolved_run import resolved_run
from tests.unit.core.measure.estimate.made import BASELINES, FIGURES, MB, figures

CONFIG = RunConfig(batch_size=8, steps=3, precision="fp32")
RUN = resolved_run(CONFIG, Mode.DDP, 2)
MUCH = Free(ram=100_000 * MB, disk=50_000 * MB)


def test_a_run_that_fits_says_so_in_one_figure() -> None:
    text = memory_text(overview(RUN, FIGURES, BASELINES, MUCH))
    assert (text.verdict, text.tone, text.remedies) == ("Fits", "success", ())
    assert (text.figure, text.detail) == ("1.7 GiB of 93 GiB", "CPU 0 and CPU 1 share this computer's memory.")
    assert [line.name for line in text.modes] == [
        "One device", "DDP", "ZeRO 1", "ZeRO 2", "ZeRO 3", "FSDP", "Parallel-independent",
    ]  # fmt: skip
    (chosen,) = (line for line in text.modes if line.is_chosen)
    assert (chosen.name, chosen.need, chosen.verdict) == ("DDP", "0.83 GiB", "Fits")
    assert "Weights: 95 MiB\nGradients: 95 MiB" in chosen.parts
    assert text.totals == (
        "Memory of this computer: 1.7 GiB of 93 GiB free",
        "Checkpoints: 1.2 GB (4 × 300 MB) of 50 GB free",
    )


def test_what_does_not_fit_comes_with_remedies() -> None:
    need = estimate_run(RUN, FIGURES, BASELINES, Free()).host_bytes
    text = memory_text(overview(RUN, FIGURES, BASELINES, Free(ram=need - MB)))
    assert (text.verdict, text.tone, text.figure) == ("Does not fit", "error", "needs 2 × 0.83 GiB, 1.7 GiB free")
    assert text.is_too_large
    smaller, narrow, *_ = text.remedies
    assert smaller.label == "Micro-batch 4 × 2"
    assert smaller.tip == "Micro-batch 4, accumulation 2 (the global batch stays): 0.72 GiB on a device"
    assert smaller.changes == {"batch_size": 4, "grad_accum_steps": 2}
    assert narrow.tip == "Precision bf16: measured once it is chosen"


def test_without_measured_passes_the_activations_are_not_zero_but_unknown() -> None:
    text = memory_text(overview(RUN, figures(step_lines=None, note="It took too long."), BASELINES, MUCH))
    assert (text.verdict, text.note, text.detail) == ("Memory not known", "It took too long.", "It took too long.")
    assert "Activations: –" in text.modes[1].parts


def test_gpus_say_which_of_them_decides() -> None:
    cards = [Device(f"GPU-{n}", "cuda", n, f"NVIDIA RTX {name}") for n, name in enumerate(("4090", "4060 Ti"))]
    run = replace(RUN, devices=tuple(cards))
    free = Free(ram=100_000 * MB, devices={"GPU-0": 24 << 30, "GPU-1": 16 << 30})
    text = memory_text(overview(run, FIGURES, BASELINES, free))
    assert text.verdict == "Fits" and text.figure.endswith("of 16 GiB") and "On GPU 1 · RTX 4060 Ti;" in text.detail
    short = memory_text(overview(run, FIGURES, BASELINES, replace(free, devices={"GPU-0": 24 << 30, "GPU-1": 5 * MB})))
    assert short.figure.endswith("4.8 MiB free") and short.detail == "On GPU 1 · RTX 4060 Ti."
    alike = replace(run, devices=tuple(replace(card, name="H100") for card in cards))
    assert memory_text(overview(alike, FIGURES, BASELINES, free)).detail.startswith("On each of 2 GPUs; ")
    unknown = memory_text(overview(run, FIGURES, BASELINES, Free(ram=100_000 * MB)))
    assert unknown.verdict == "Memory not known" and unknown.figure.endswith("free memory not known")


def test_the_parameters_alone_can_say_that_it_does_not_fit() -> None:
    figures_of_412_billion = least_figures(ModelSize(ParameterCount(412 * 10**9, 412 * 10**9)), 1)
    alone = resolved_run(CONFIG, Mode.SINGLE, 1)
    text = memory_text(overview(alone, figures_of_412_billion, Baselines(), Free(ram=20 << 30)))
    assert (text.verdict, text.figure, text.remedies) == ("Does not fit", "needs 6.6 TB, 20 GiB free", ())
    both = memory_text(overview(RUN, figures_of_412_billion, Baselines(), Free(ram=20 << 30)))
    assert both.figure == "needs 2 × 6.6 TB, 20 GiB free"
    small = least_figures(ModelSize(ParameterCount(10**9, 10**9)), 2)
    text = memory_text(overview(RUN, small, Baselines(), Free(ram=20 << 30)))
    assert [remedy.label for remedy in text.remedies] == ["ZeRO 2", "One device"]
    text = memory_text(overview(RUN, small, Baselines(), Free(ram=100 << 30)))
    assert (text.verdict, text.tone, text.figure) == ("Weights fit", "muted", "at least 30 GiB of 100 GiB")


def test_a_mode_that_cannot_be_used_says_why() -> None:
    text = memory_text(overview(resolved_run(CONFIG, Mode.SINGLE, 1), FIGURES, BASELINES, MUCH))
    assert (text.modes[1].need, text.modes[1].verdict) == ("", "–")
    assert text.modes[1].parts == "It needs at least two devices."


def test_windows_promises_memory_too() -> None:
    run = replace(RUN, platform=replace(RUN.platform, name="windows"))
    text = memory_text(overview(run, FIGURES, BASELINES, replace(MUCH, commit=200_000 * MB)))
    assert text.totals[1] == "With the page file: 1.7 GiB of 186 GiB free"


def test_an_error_is_a_note() -> None:
    text = unknown_text(ConfigError("dataset_file", "There is no such file.", "Choose another file."))
    assert (text.verdict, text.note) == ("Memory not known", "There is no such file. Choose another file.")


def test_time_stands_beside_memory_once_it_is_measured() -> None:
    assert memory_text(overview(RUN, FIGURES, BASELINES, MUCH), is_timing=True).time == TIMING
    steps = StepFigures(8, pass_s=1.08, update_s=0.1, tokens_per_sample=100)
    alone = replace(steps, pass_s=0.9)
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


UNLIKE = tuple(Device(f"GPU-{n}", "cuda", n, name) for n, name in enumerate(("RTX 4090", "RTX 4060 Ti")))


def test_balancing_is_proposed_with_what_was_measured() -> None:
    run = replace(RUN, devices=UNLIKE)
    text = balance_text(run, BalanceGain(1.61, (11, 5), 0, 0.55), Timed.YES)
    assert text is not None and text.gain == "1.6 × the speed"
    said = text.text.replace(NO_BREAK, " ")
    assert said == "Measured: in equal shares GPU 0 waits 55 % of each step. By speed: GPU 0 11 · GPU 1 5 samples."


def test_balancing_is_proposed_before_it_is_measured() -> None:
    run = replace(RUN, devices=UNLIKE)
    unmeasured = balance_text(run, None, Timed.NO)
    assert unmeasured is not None and unmeasured.gain == "" and unmeasured.can_measure
    assert unmeasured.text.startswith("GPU 0 and GPU 1 differ.")
    for timed, said in ((Timed.NOW, "Timing steps"), (Timed.WHILE_TRAINING, "once no run is training")):
        text = balance_text(run, None, timed)
        assert text is not None and said in text.text and not text.gain and not text.can_measure
    alike = replace(RUN, devices=(UNLIKE[0], replace(UNLIKE[0], uuid="GPU-1", index=1)))
    assert balance_text(alike, None, Timed.NO) is None
    slots = tuple(Device(f"cpu:{n}", "cpu", n, f"CPU {n}") for n in range(2))
    assert balance_text(replace(RUN, devices=slots), None, Timed.NO) is None, "slots of one processor"
    assert balance_text(run, None, Timed.YES) is None, "it was measured not to be worth it"
    balanced = replace(run, config=run.config.replace(balance="measured"))
    assert balance_text(balanced, None, Timed.NO) is None
