"""Follows a run until it ends, and reports how: reads its metrics and state from its folder, as every client does."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from core.cli.interrupts import Interrupts
from core.cli.progress_line import RunProgress
from core.cli.terminal import Terminal
from core.client import HostConnection, stop_run
from core.errors import RankdeckError, StateFileError, sentences
from core.formatting import count, duration, number
from core.machine.devices.names import RankNames
from core.metrics.event_text import event_text
from core.metrics.metrics_file import MetricsTail, parse_line
from core.protocol.messages import RunStatus
from core.recipes.main_metric import LOSS, MainMetric, MainMetrics
from core.recipes.user_script import RECIPE as USER_SCRIPT
from core.run_folder.remote_run import NO_CONNECTION, read_remote
from core.run_folder.state import RunState
from core.run_folder.store import RunStore

POLL_S: Final = 0.1
# Interval of progress lines in a file or pipe.
PLAIN_LINE_EVERY_S: Final = 5.0
_WRITTEN_AGAIN: Final = "There is disk space again. Metrics are being written."
INTERRUPTED_TWICE: Final = 130
RUN_FAILED: Final = 1
# A host writes its progress every 3 s (`core.host.metrics.status`), if there is any.
QUIET_S: Final = 4.0
RETRY_S: Final = 5.0
CONNECT_LIMIT_S: Final = 1.0
_LOOK_S: Final = 0.001
# Events with a line of their own, beside evaluations.
_OWN_LINES: Final = (
    *("launch", "data", "commit", "restart", "retry", "fallback"),
    *("balance", "sample_left_out", "straggler", "alert"),
)
# Notes were printed before the start.
_OF_THE_WINDOW: Final = ("window_step", "notes")


@dataclass(frozen=True, slots=True)
class Ending:
    state: RunState
    progress: RunProgress
    interrupts: int


class Follower:
    """Shows one run's metrics and states as they come.

    Args:
        as_json: Print each metrics line and each change of state as JSON instead of a progress line.
        offset: Bytes of the metrics file that are not shown (those of an earlier attempt).
    """

    def __init__(self, store: RunStore, terminal: Terminal, as_json: bool, offset: int = 0) -> None:
        self._store = store
        self._terminal = terminal
        self._as_json = as_json
        self._tail = MetricsTail(store.metrics, offset)
        self._progress = RunProgress()
        self._metrics = MainMetrics()
        self._live = LiveStatus(store)
        self._shown: tuple[str, str] | None = None
        self._trouble: Mapping[str, str] = {}
        self._said_early: set[str] = set()
        self._next_plain_line_s = time.monotonic() + PLAIN_LINE_EVERY_S
        self._line_shown = ""

    def replay(self) -> None:
        while lines := self._tail.read():
            for line in lines:
                self._progress.take(parse_line(line))

    def until_end(self, interrupts: Interrupts, on_interrupt: Callable[[int], bool]) -> Ending:
        """Show new lines until the run has ended, or `on_interrupt` (called once for each Ctrl+C) returns True.

        Raises:
            StateFileError: `state.json` is damaged.
            RankdeckError: The run's folder is gone.
        """
        try:
            return self._until_end(interrupts, on_interrupt)
        finally:
            self._live.close()

    def _until_end(self, interrupts: Interrupts, on_interrupt: Callable[[int], bool]) -> Ending:
        handled = 0
        while True:
            # First the state, then the lines: so no line before an end is missed.
            state = self._state()
            self._progress.metric = self._metrics.of(state.recipe)
            self._show_lines()
            self._show_state(state)
            if not state.is_live:
                break
            leave = False
            while handled < interrupts.count and not leave:
                handled += 1
                leave = on_interrupt(handled)
            if leave:
                break
            time.sleep(POLL_S)
        self._terminal.end_progress()
        return Ending(state, self._progress, handled)

    def _state(self) -> RunState:
        try:
            return self._live.newest(self._store.state())
        except StateFileError:
            if self._store.state_json.exists() or self._store.run_toml.exists():
                raise
            raise RankdeckError(
                f"{self._store.dir} was removed or moved while the run was being watched.",
                "If it was moved, resume it from where it is now: rankdeck resume FOLDER.",
                title="The run's folder is gone",
            ) from None

    def _show_lines(self) -> None:
        while lines := self._tail.read():
            for line in lines:
                parsed = parse_line(line)
                self._progress.take(parsed)
                if self._as_json:
                    self._terminal.data(line.decode("utf-8", errors="replace"))
                elif (text := line_text(parsed, self._progress.metric)) and not self._is_known(parsed):
                    self._terminal.say(text)

    def _is_known(self, line: Mapping[str, Any]) -> bool:
        cause = line.get("cause")
        if line.get("event") != "alert" or cause not in self._said_early:
            return False
        self._said_early.discard(cause)
        return True

    def _show_state(self, state: RunState) -> None:
        if (state.state, state.phase) != self._shown:
            self._shown = (state.state, state.phase)
            if self._as_json:
                self._terminal.json({**state.as_dict(), "ts": state.updated, "event": "state", "rank": -1})
                return
        if not self._as_json:
            if state.is_live:
                self._show_trouble(state.trouble or {})
            self._show_progress(state)

    def _show_trouble(self, trouble: Mapping[str, str]) -> None:
        """Report once that something prevents the run from being saved, and once that this is over."""
        if trouble == self._trouble:
            return
        before, self._trouble = self._trouble, trouble
        if trouble:
            self._said_early.add(trouble.get("cause", ""))
            self._terminal.say(line_text({"event": "alert", **trouble}))
        else:
            cut = before.get("title", "").startswith(NO_CONNECTION)
            self._terminal.say("The connection is back." if cut else _WRITTEN_AGAIN)

    def _show_progress(self, state: RunState) -> None:
        self._progress.goal = state.goal
        if state.total_steps is not None or state.goal:
            self._progress.total_steps = state.total_steps
        self._progress.first_epoch = 0 if state.recipe == USER_SCRIPT else 1
        phase = f"{state.state}: {state.phase}" if state.phase else state.state
        text = phase
        if self._trouble:
            text = f"{self._trouble.get('title')} · {state.state}, step {count(state.step)}"
        elif self._progress.step and state.state == "training":
            text = self._progress.text()
        if self._terminal.is_interactive:
            self._terminal.progress(text)
        elif text != self._line_shown and time.monotonic() >= self._next_plain_line_s:
            self._next_plain_line_s = time.monotonic() + PLAIN_LINE_EVERY_S
            self._line_shown = text
            self._terminal.say(text)


class LiveStatus:
    """The state that a run's host sends over its socket while its files do not change, for example on a full disk.

    There is no connection while the files tell everything: each one makes the host wake up more often.
    """

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._connection: HostConnection | None = None
        self._reported: RunState | None = None
        self._updated = 0.0
        self._connect_at = time.monotonic() + QUIET_S

    def newest(self, stored: RunState) -> RunState:
        """Return the newer of `stored`, the state in the file, and the state that the host sent."""
        if stored.updated != self._updated or not stored.is_live:
            self._updated = stored.updated
            if self._reported is None or stored.updated >= self._reported.updated or not stored.is_live:
                self.close()
        if not stored.is_live:
            return stored
        if self._connection is None and time.monotonic() >= self._connect_at:
            self._connect()
        self._listen()
        reported = self._reported
        return reported if reported is not None and reported.updated > stored.updated else stored

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection, self._reported = None, None
        self._connect_at = time.monotonic() + QUIET_S

    def _connect(self) -> None:
        self._connect_at = time.monotonic() + RETRY_S
        try:
            info = self._store.read_host_json()
            if info is not None:
                self._connection = HostConnection(self._store, info, CONNECT_LIMIT_S)
        except RankdeckError:  # it has just ended, or does not answer: the files are all there is
            return

    def _listen(self) -> None:
        if self._connection is None:
            return
        try:
            for message in self._connection.messages(_LOOK_S):
                if isinstance(message, RunStatus):
                    self._reported = RunState.from_dict(message.state)
        except RankdeckError:
            self.close()


class StopLadder:
    def __init__(self, store: RunStore, terminal: Terminal) -> None:
        self._store = store
        self._terminal = terminal

    def climb(self, number: int) -> bool:
        now = number > 1
        self._terminal.warn("Stopping now." if now else self._asked())
        try:
            stop_run(self._store, now=now)
        except RankdeckError as error:
            # It has just ended by itself, or its host is still starting: then the next Ctrl+C asks again.
            if self._store.state().is_live:
                self._terminal.warn(sentences(error.cause, error.next_step))
        return False

    def _asked(self) -> str:
        if self._store.state().recipe == USER_SCRIPT:
            return "Asked the script to stop. Press Ctrl+C again to stop it immediately."
        return "Saving a checkpoint at the next step, then stopping. Press Ctrl+C again to stop immediately."


def line_text(line: Mapping[str, Any], metric: MainMetric = LOSS) -> str:
    """Return the text of an event that has a line of its own; empty for others."""
    event = line.get("event")
    if event == "eval":
        return f"Step {line.get('step')}: {_evaluation(line, metric)}"
    if event not in _OWN_LINES or (event == "data" and not line.get("text")):
        return ""
    text = event_text({name: value for name, value in line.items() if name not in _OF_THE_WINDOW}, RankNames())
    return f"Alert: {text}" if event == "alert" else text


def _evaluation(line: Mapping[str, Any], metric: MainMetric) -> str:
    main = next((name for name in metric.eval_names if name in line), "val_loss")
    title = metric.eval_title if main != "val_loss" else LOSS.eval_title
    others = (name for name in line if name.startswith("val_") and name not in ("val_loss", main))
    figures = {title: line.get(main), **{name.removeprefix("val_").replace("_", " "): line[name] for name in others}}
    known = {name: value for name, value in figures.items() if name == title or isinstance(value, int | float)}
    return ", ".join(f"{name} {number(value, 4)}" for name, value in known.items())


def exit_code(ending: Ending) -> int:
    state = ending.state
    if ending.interrupts > 1:
        return INTERRUPTED_TWICE
    if state.state in ("finished", "stopped"):
        # Stopped at once from another terminal is not 0: not everything is committed.
        return state.exit_code or 0
    return state.exit_code or RUN_FAILED


def report_ending(ending: Ending, store: RunStore, terminal: Terminal) -> None:
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
    elif state.error is not None:
        terminal.error(run_error(state, store))


def _took(state: RunState) -> str:
    if state.trained_s:
        return f" after {duration(state.trained_s)} of training"
    return f" after {duration(state.updated - state.created)}" if state.attempt == 1 else ""


def _figures(ending: Ending, store: RunStore) -> str:
    progress, state = ending.progress, ending.state
    metric = progress.metric
    value, evaluated = progress.value, progress.evaluated
    # Nothing was trained since the run was resumed.
    if value is None:
        value = metric.last(state.loss, metric.read(state.loss, store.columns, store.metrics))
    if evaluated is None and "loss" in metric.names:
        evaluated = state.val_loss
    parts = {metric.title: value, metric.eval_title: evaluated}
    return ", ".join(f"{title} {number(found, 4)}" for title, found in parts.items() if found is not None)


def run_error(state: RunState, store: RunStore) -> RankdeckError:
    error = state.error or {}
    return RankdeckError(
        error.get("cause") or "The run ended without reporting a reason.",
        error.get("next_step") or f"Read {store.logs / 'host.log'}.",
        title=error.get("title") or None,
    )
