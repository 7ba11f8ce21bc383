"""Self-test of a model: whether it fits the devices that are chosen, by a measurement in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from core.doctor.finding import SELF_TESTS, Finding, Topic
from core.errors import RankdeckError
from core.formatting import memory_size
from core.launch.resolved import ResolvedRun
from core.machine.devices.monitor import DeviceMonitor
from core.measure.estimate.free import free_now
from core.measure.estimate.overview import Overview, overview
from core.measure.estimate.probe import find_baselines, find_figures
from core.measure.ranks import CancelledError

FIT: Final = Topic(
    "fit", "The chosen model fits", SELF_TESTS, "A run that needs more memory than is free stops, or slows the machine."
)


def check_fit(run: ResolvedRun, runs_dir: Path, cancelled: Callable[[], bool]) -> Finding:
    """Whether a run's model fits. Blocks for about fifteen seconds where it was not measured before."""
    what = f"{run.recipe.title}, {run.mode.label}"
    if run.recipe.self_contained:
        return FIT.not_tried(f"{what}: a script's model is known only to itself")
    try:
        fitted, notes = run.fitted()
        figures, baselines = find_figures(fitted, cancelled=cancelled), find_baselines(fitted, cancelled=cancelled)
    except CancelledError:
        return FIT.not_tried("the self-test was cancelled")
    except RankdeckError as error:
        return FIT.warn(f"{what}: {error.cause}", error.next_step)
    with DeviceMonitor() as monitor:
        monitor.devices()
        free = free_now(monitor.sample(), runs_dir)
    return fit_finding(" ".join([*notes, what]), overview(fitted, figures, baselines, free))


def fit_finding(what: str, made: Overview) -> Finding:
    """The verdict of an estimate as a finding.

    Args:
        what: The model and the mode.
        made: The estimate.
    """
    chosen = made.chosen
    text = f"{what}: {memory_size(chosen.largest)} on the largest device. {chosen.sentence()}"
    if chosen.verdict == "unknown":
        return FIT.not_tried(f"{text} {made.figures.note}".strip())
    if chosen.verdict == "fits":
        return FIT.ok(text)
    best = next((remedy.text for remedy in made.remedies if remedy.bytes is not None), "")
    step = f"{best}." if best else "Choose a smaller model, a smaller micro-batch, or other devices."
    return FIT.warn(text, step) if chosen.verdict == "tight" else FIT.fail(text, step)
