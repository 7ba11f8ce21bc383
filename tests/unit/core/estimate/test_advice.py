"""Advice on how many devices to train on: one sentence, made of figures."""

from __future__ import annotations

from dataclasses import replace

from core.config.mode import Mode
from core.estimate.advice import advice, hours_text
from core.estimate.estimate import estimate_modes
from core.estimate.free import Free
from core.estimate.prices import NO_PRICES, Prices
from core.estimate.speed import NO_LINK, NO_STEP, PastRun, TimeFigures, estimate_times
from core.estimate.step_figures import StepFigures
from core.launch.resolved import ResolvedRun
from core.machine.devices.device import Device
from core.probes.sync_cost import Link
from tests.helpers.resolved_run import resolved_run
from tests.unit.core.estimate.made import BASELINES, CONFIG, FIGURES, FOUND, MB, MUCH, RUN, figures


def advised(run: ResolvedRun = RUN, found: TimeFigures = FOUND, prices: Prices = NO_PRICES, free: Free = MUCH) -> str:
    modes = estimate_modes(run, FIGURES, BASELINES, free)
    return advice(run, modes, estimate_times(run, FIGURES, found, prices), prices)


def test_advice_is_made_of_the_figures() -> None:
    assert advised() == "Use both devices in DDP: 1.7 × predicted, 0.80 h less."
    assert advised(resolved_run(CONFIG, Mode.SINGLE, 1)) == ""
    past = replace(FOUND, past={"fsdp": PastRun(0.9, 18.0)})
    assert advised(found=past).startswith("Use both devices in FSDP: 2.2 × as in an earlier run")
    near = replace(FOUND, link=Link(500.0, 0.0, 2, "gloo", 500.0), error=0.5)
    assert advised(found=near) == (
        "Use one device: both devices in DDP are about as fast (1.4 × predicted, give or take 50\N{NO-BREAK SPACE}%)."
    )
    slow = replace(FOUND, link=Link(50.0, 0.0, 2, "gloo"))
    assert advised(found=slow) == "Use one device: both devices in DDP are not faster (0.63 × predicted)."
    run = resolved_run(CONFIG, Mode.INDEPENDENT, 2)
    assert advised(run).startswith("Use both devices in parallel-independent: 1.7 ×")
    assert advised(found=TimeFigures()) == NO_STEP
    assert advised(found=replace(FOUND, link=None)) == NO_LINK


def test_advice_counts_money_and_memory() -> None:
    cards = (Device("GPU-a", "cuda", 0, "Card"), Device("GPU-b", "cuda", 1, "Card"))
    steps = StepFigures(0, 8, pass_s=0.9, update_s=0.1, power_w=100.0)
    found = TimeFigures({("Card", 0, 1): steps, ("Card", 0, 2): steps}, Link(1000.0, 0.0, 2, "gloo"))
    run = replace(RUN, devices=cards)
    prices = Prices(kwh=1.0, currency="€")
    # DDP: 1.1 s a step, 1.1 h at 200 W = 0.22 kWh; one card: 2 h at 100 W = 0.2 kWh.
    assert advised(run, found, prices) == (
        "Use both cards in DDP: 1.8 × predicted, 0.90 h less, 0.02\N{NO-BREAK SPACE}€ more."
    )


def test_a_model_that_does_not_fit_one_device_needs_them_all() -> None:
    cards = (Device("GPU-a", "cuda", 0, "Card"), Device("GPU-b", "cuda", 1, "Card"))
    run, little = replace(RUN, devices=cards), figures(step_lines=((100 * MB, 0),), added_lines=((0, 2 * MB),))
    found = TimeFigures(
        dict.fromkeys((("Card", 0, 1), ("Card", 0, 2)), StepFigures(0, 8, pass_s=0.9, update_s=0.1)),
        Link(20.0, 0.0, 2, "gloo"),
    )
    needs = {mode.name: mode.largest for mode in estimate_modes(run, little, BASELINES, MUCH)}
    assert needs["fsdp"] < needs["single"]
    tight = replace(MUCH, devices=dict.fromkeys(("GPU-a", "GPU-b"), needs["single"] - MB))
    modes, costs = estimate_modes(run, little, BASELINES, tight), estimate_times(run, little, found, NO_PRICES)
    text = advice(run, modes, costs, NO_PRICES)
    assert text.startswith("Use both cards in ") and "since the model does not fit one: 0." in text


def test_hours_are_written_as_people_plan() -> None:
    assert [hours_text(hours) for hours in (12.3, 0.43, 0.05, 0.01)] == ["12 h", "0.43 h", "3.0 min", "36 s"]
