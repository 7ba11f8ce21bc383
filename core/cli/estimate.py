"""`rankdeck estimate`: a run's memory and time in every mode; the errors of earlier estimates."""

from __future__ import annotations

import argparse

from core.cli.runs import chosen_runs_dir
from core.cli.terminal import Terminal
from core.cli.trial_run import checked_run
from core.errors import ConfigError
from core.formatting import UNKNOWN, byte_size, memory_size, number, parameters_text, rate, short_duration
from core.launch.resolved import ResolvedRun
from core.machine.devices.monitor import DeviceMonitor
from core.machine.devices.names import device_label
from core.measure.estimate.free import free_now
from core.measure.estimate.history import history
from core.measure.estimate.overview import Overview, hours_text, overview
from core.measure.estimate.probe import find_baselines, find_figures
from core.measure.estimate.steps import find_time

VERDICTS = {"fits": "fits", "tight": "tight", "too_large": "does not fit", "unknown": UNKNOWN}
GAINS = {"faster": "faster", "same": "no gain", "slower": "slower", "unknown": UNKNOWN}
_COLUMNS = ("WEIGHTS", "GRADIENTS", "OPTIMIZER", "ACTIVATIONS", "EXCHANGE", "COPY", "FRAMEWORK", "GAPS", "SUM", "FREE")


def estimate(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Show a run's memory and time, or the history of predictions."""
    if arguments.history:
        return _history(arguments, terminal)
    run = checked_run(arguments, terminal, _check_measurable)
    with DeviceMonitor() as monitor:
        free = free_now(monitor.sample(), chosen_runs_dir(arguments))
    terminal.progress("Measuring the model")
    figures = find_figures(run)
    terminal.progress("Measuring bare processes (once for each PyTorch)")
    baselines = find_baselines(run)
    terminal.progress("Timing steps and the link between the devices")
    time = find_time(run, figures)
    terminal.end_progress()
    made = overview(run, figures, baselines, free, time)
    if arguments.json:
        terminal.json(made.as_dict())
    else:
        _show(terminal, made)
    return 0


def _check_measurable(run: ResolvedRun) -> None:
    if run.recipe.self_contained:
        raise ConfigError(
            "recipe", f"{run.recipe.title} has a model that only it knows.", "Choose a recipe with a train.py."
        )


def _history(arguments: argparse.Namespace, terminal: Terminal) -> int:
    rows = history(chosen_runs_dir(arguments))
    if arguments.json:
        terminal.json(rows)
        return 0
    terminal.table(
        ("RUN", "RECIPE", "MODE", "PREDICTED", "MEASURED", "ERROR"),
        [
            (
                row["run"],
                row["recipe"],
                row["mode"],
                memory_size(row["predicted_bytes"]),
                memory_size(row["measured_bytes"]),
                UNKNOWN if row["error"] is None else f"{100 * row['error']:+.1f} %",
            )
            for row in rows
        ],
    )
    return 0


def _show(terminal: Terminal, made: Overview) -> None:
    figures, chosen, free = made.figures, made.chosen, made.free
    terminal.say(f"{made.run.recipe.title}: {parameters_text(figures.parameters, figures.trainable)}")
    if made.note:
        terminal.warn(made.note)
    rows = []
    for mode in made.modes:
        if mode.reason:
            rows.append((mode.variant.name, *[UNKNOWN] * (len(_COLUMNS) + 1), mode.reason))
        for need in mode.devices:
            memory = need.memory.as_dict() | ({} if figures.is_measured else {"activations": None})
            sizes = [memory_size(value) for value in (*memory.values(), need.need.free_bytes)]
            rows.append((mode.variant.name, device_label(need.device), *sizes, VERDICTS[need.need.verdict]))
    terminal.table(("MODE", "DEVICE", *_COLUMNS, "VERDICT"), rows)
    terminal.say(f"{chosen.variant.name}: {chosen.sentence()}")
    terminal.say(f"Machine's memory: {memory_size(chosen.host_bytes)} of {memory_size(free.ram)} free")
    if chosen.commit_bytes is not None:
        terminal.say(f"Commit charge: {memory_size(chosen.commit_bytes)} of {memory_size(free.commit)} free")
    copies = made.run.config.keep_checkpoints + 1
    disk = f"{byte_size(chosen.disk_bytes)} for {copies} of {byte_size(chosen.checkpoint_bytes)}"
    terminal.say(f"Checkpoints: {disk}; {byte_size(free.disk)} free on the disk")
    for remedy in made.remedies:
        after = "to be measured" if remedy.bytes is None else memory_size(remedy.bytes)
        terminal.say(f"  {remedy.text}: {after}")
    _show_time(terminal, made)


def _show_time(terminal: Terminal, made: Overview) -> None:
    rows = []
    for mode, time in zip(made.modes, made.times, strict=True):
        if mode.reason:
            continue
        speed = rate(time.samples_per_s, "samples/s") if time.tokens_per_s is None else rate(time.tokens_per_s, "tok/s")
        rows.append(
            (
                mode.variant.name,
                UNKNOWN if time.step_s is None else short_duration(time.step_s),
                speed,
                UNKNOWN if time.speedup is None else f"{number(time.speedup)} ×",
                UNKNOWN if time.hours is None else hours_text(time.hours),
                GAINS[time.gain],
            )
        )
    terminal.table(("MODE", "STEP", "SPEED", "SPEED-UP", "TIME", "VERDICT"), rows)
    reasons = dict.fromkeys(time.reason for mode, time in zip(made.modes, made.times, strict=True) if not mode.reason)
    for text in filter(None, (made.time_note, *reasons)):
        terminal.say(text)
    if made.advice and made.advice not in reasons:
        terminal.say(made.advice)
