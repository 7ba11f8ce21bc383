"""Run endings: reported in a few lines, and as the command's exit code."""

from __future__ import annotations

from typing import Final

from core.cli.follow import INTERRUPTED_TWICE, Ending
from core.cli.terminal import Terminal
from core.errors import RankdeckError
from core.formatting import duration, number
from core.recipes.user_script import RECIPE as USER_SCRIPT
from core.run_folder.remote_run import read_remote
from core.run_folder.state import RunState
from core.run_folder.store import RunStore

RUN_FAILED: Final = 1


def exit_code(ending: Ending) -> int:
    """What the command returns for how the run ended."""
    state = ending.state
    if ending.interrupts > 1:
        return INTERRUPTED_TWICE
    if state.state in ("finished", "stopped"):
        return state.exit_code or 0  # stopped at once from another terminal is not 0: not everything is committed
    return state.exit_code or RUN_FAILED


def report_ending(ending: Ending, store: RunStore, terminal: Terminal) -> None:
    """Reports how a run ended: its figures and the model's path, or its error."""
    state = ending.state
    if state.state in ("finished", "stopped"):
        figures = _figures(ending, store)
        at = f" at step {state.step}" if state.step or figures else ""
        at += f" ({state.goal})" if state.goal else ""
        terminal.say(f"{state.state.capitalize()}{at}{_took(state)}{f': {figures}' if figures else '.'}")
        if state.stopped_by:
            terminal.say(f"Stopped early: {state.stopped_by}")
        if state.recipe == USER_SCRIPT and not at:
            terminal.say("The script printed no step or loss that Rankdeck recognises.")
            terminal.say("To chart its numbers, name them with --map NAME=CHART or call rankdeck.log in the script.")
        if state.error is not None and state.exit_code == RUN_FAILED:
            terminal.error(run_error(state, store))
            return
        if (remote := read_remote(store.dir)) is not None and remote.is_there:
            terminal.say(f"Model and checkpoints are on {remote.machine}. Fetch them: rankdeck fetch {store.dir.name}")
        elif store.model.is_file():
            terminal.say(f"Model: {store.model}")
        if state.state == "stopped":
            again = "Run the script again" if state.recipe == USER_SCRIPT else "Resume it"
            terminal.say(f"{again}: rankdeck resume {store.dir.name}")
    elif state.error is not None and not state.between_hosts:
        terminal.error(run_error(state, store))


def _took(state: RunState) -> str:
    """How long it trained; the time between two attempts does not count."""
    if state.trained_s:
        return f" after {duration(state.trained_s)} of training"
    return f" after {duration(state.updated - state.created)}" if state.attempt == 1 else ""


def _figures(ending: Ending, store: RunStore) -> str:
    """The last value of the run's main metric and of its evaluation: "loss 1.83, validation loss 1.97"."""
    progress, state = ending.progress, ending.state
    metric = progress.metric
    value, evaluated = progress.value, progress.evaluated
    if value is None:  # nothing was trained since the run was resumed
        value = metric.last(state.loss, metric.read(state.loss, store.columns, store.metrics))
    if evaluated is None and "loss" in metric.names:
        evaluated = state.val_loss
    parts = {metric.title: value, metric.eval_title: evaluated}
    return ", ".join(f"{title} {number(found, 4)}" for title, found in parts.items() if found is not None)


def run_error(state: RunState, store: RunStore) -> RankdeckError:
    """A failed run's error."""
    error = state.error or {}
    return RankdeckError(
        error.get("cause") or "The run ended without reporting a reason.",
        error.get("next_step") or f"Read {store.logs / 'host.log'}.",
        title=error.get("title") or None,
    )
