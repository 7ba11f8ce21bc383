"""A rank that is a program of the user's own: speaks with the run host, so that the program need not know of it.

No torch here, and nothing of ours in the program: it has its own interpreter, folder and environment. This process
starts it, charts its output, passes on its calls of `rankdeck`, asks it to stop, and reports its end to the host.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import time
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final

from core.config.layers import load_config
from core.config.mode import Mode
from core.errors import RankdeckError, UsageError
from core.held_files import open_binary
from core.protocol.messages import Bye, Finish, Message, Phase, RankDone, RankFailed, Stop
from core.protocol.rank_context import RankContext
from core.recipes.user_script import UserScript, read_script
from workers.host_link.connection import HostConnection, tie_to_host
from workers.host_link.reporter import Reporter
from workers.script.child import LifeSigns, Script, ignore_interrupts
from workers.script.ending import describe_failure
from workers.script.launch import is_alone, script_environment
from workers.script.ledger_link import LedgerLink, finish_record, read_record
from workers.script.printed.names import RESERVED, Names
from workers.script.printed.readings import MOST_STEPS
from workers.script.printed.steps import Point, PrintedMetrics
from workers.script.sdk_server import ENV_PORT as SDK_PORT
from workers.script.sdk_server import ENV_TOKEN as SDK_TOKEN
from workers.script.sdk_server import Peer, SdkServer
from workers.script.store import HostedStore, can_host

POLL_S: Final = 0.025
BUSY_POLL_S: Final = 0.005
# A step whose lines have stopped coming for this long is charted as it is.
QUIET_S: Final = 0.3
_READ_BYTES: Final = 1 << 20
_TAIL_BYTES: Final = 1 << 16
_FAILED: Final = 1
_USAGE: Final = 2
_OUR_LINE: Final = re.compile(rb"rankdeck: [^\r\n]*[\r\n]+")


def main() -> int:
    """Run one rank to its end.

    Returns:
        The exit code: 0, or 1 when the program failed, or 2 for an invalid request.
    """
    ignore_interrupts()
    try:
        context = RankContext.from_env(os.environ)
        tie_to_host(context.host_pid)
        connection = HostConnection(context)
    except RankdeckError as error:
        sys.stderr.write(f"rankdeck: {error}\n")
        return _FAILED
    reporter = Reporter(connection, context.rank, context.attempt)
    last: Bye | RankFailed
    try:
        last, code = _Wrapper(context, connection, reporter).run()
    except Exception as error:
        traceback.print_exc()
        last, code = _own_failure(error), _USAGE if isinstance(error, UsageError) else _FAILED
    connection.expect_close()
    delivered = reporter.close(last)
    connection.close()
    return code if delivered else _FAILED


@dataclass(slots=True)
class _Output:
    """The program's unread output: the log, from its size when the program was started."""

    file: IO[bytes]
    printed: PrintedMetrics
    heard_at: float = 0.0
    start: int = 0

    def read(self) -> list[Point]:
        points: list[Point] = []
        while data := self.file.read(_READ_BYTES):
            self.heard_at = time.monotonic()
            points += self.printed.feed(_OUR_LINE.sub(b"", data))
        return points

    def tail(self) -> str:
        size = self.file.seek(0, os.SEEK_END)
        self.file.seek(max(self.start, size - _TAIL_BYTES))
        return self.file.read().decode("utf-8", errors="replace")


class _Charts:
    """Charts numbers from the output and from `rankdeck.log`; `step` is the newest."""

    def __init__(self, names: Names, reporter: Reporter, step: int) -> None:
        self.step = step
        self._names, self._reporter = names, reporter
        self._charted: set[str] = set()
        self._told: set[str] = set()
        self._told_unread = self._logs = False

    def take(self, points: Iterable[Point]) -> None:
        """Chart the output, unless the script logs its numbers itself: they would be charted twice."""
        for point in points if not self._logs else ():
            epoch = point.epoch
            if epoch is not None and epoch % 1 == 0 and epoch < MOST_STEPS:
                epoch = int(epoch)
            values = point.values if epoch is None else {**point.values, "epoch": epoch}
            self._emit(point.step, values, evaluation=point.evaluation)

    def take_log(self, values: object, step: object) -> None:
        """Chart a call of `rankdeck.log`."""
        if not isinstance(values, dict):
            return
        self._logs = True
        step = step if isinstance(step, int) and abs(step) < MOST_STEPS else self.step + 1
        train: dict[str, Any] = {}
        evaluated: dict[str, Any] = {}
        for name, number in values.items():
            chart, factor = self._names.chart(str(name), logged=True)
            if isinstance(number, int | float) and chart and chart not in RESERVED:
                number = number if factor == 1.0 else number * factor
                (evaluated if self._names.is_evaluation(chart) else train)[chart] = number
        if train or not evaluated:
            self._emit(step, train, evaluation=False)
        if evaluated:
            self._emit(step, evaluated, evaluation=True)

    def _emit(self, step: int, values: Mapping[str, Any], *, evaluation: bool) -> None:
        self._charted.update(values)
        if evaluation:
            self._reporter.event("eval", step=step, **values)
        else:
            self.step = step
            self._reporter.log(step, **values)

    def tell_names(self) -> None:
        """Report the chart of each printed name once: the person may want it otherwise."""
        seen = self._names.seen.items()
        new = {name: chart for name, chart in seen if name not in self._told and chart in self._charted}
        if new:
            self._told |= new.keys()
            self._reporter.event("charts", names=new)

    def tell_unread(self, printed: PrintedMetrics, ended: bool) -> None:
        """Report once that nothing could be charted, with the names and numbers that could be mapped by hand."""
        if self._told_unread or self._charted or self._logs:
            return
        unread = printed.describe_unread(ended)
        if unread is not None:
            self._told_unread = True
            self._reporter.event("alert", kind="not_charted", **unread)


class _Wrapper:
    """One program and its connections. One loop, one thread."""

    def __init__(self, context: RankContext, connection: HostConnection, reporter: Reporter) -> None:
        self._context = context
        self._rank, self._run_id, self._inbox = context.rank, connection.run_id, connection.inbox
        self._alone = is_alone(context)
        self._reporter = reporter
        self._config = load_config(context.config_file)
        self._script: UserScript = read_script(self._config.options, self._config.env)
        self._names = Names(self._script.charts)
        before = read_record(context.checkpoint, self._rank)
        # Most scripts save on rank 0 only, and every rank loads that.
        if before.checkpoint is None:
            before = replace(before, checkpoint=read_record(context.checkpoint, 0).checkpoint)
        else:
            finish_record(before)
        before = replace(before, staged=None)
        self._charts = _Charts(self._names, reporter, before.step)
        independent = context.mode == Mode.INDEPENDENT
        self._ledger = LedgerLink(self._rank, independent, reporter.send, before, self._config.dataset_chunk_size)
        self._stop_asked_at: float | None = None  # on the monotonic clock
        self._signalled = self._ended = False
        self._finish = self._polls = False
        self._spoke_at = 0.0
        self._store: HostedStore | None = None
        self._server = SdkServer(self._welcome, self._on_message)

    def run(self) -> tuple[Bye | RankFailed, int]:
        """Run the program and return this rank's last message and the exit code."""
        try:
            output = self._open_output()
            with output.file:
                script = self._start()
                self._reporter.send(Phase("running", self._script.name))
                code = self._watch(
                    script, output, LifeSigns(script.pid, self._reporter.send, self._config.hang_timeout_s)
                )
                if code != 0 and self._stop_asked_at is None:
                    on_cpu, world_size = self._context.on_cpu, self._context.world_size
                    failure = describe_failure(code, output.tail(), self._script, on_cpu=on_cpu, world_size=world_size)
                    return failure, _FAILED
            self._reporter.send(RankDone(self._charts.step, finished=self._stop_asked_at is None))
            while not self._finish:
                self._hear(self._inbox.get())
        finally:
            self._server.close()
            if self._store is not None:
                self._store.close()
        return Bye(self._charts.step), 0

    def _open_output(self) -> _Output:
        # Our own standard output is the log, and the program inherits it: nothing lies between the two.
        path = self._context.run_dir / "logs" / f"rank{self._rank}.log"
        file = open_binary(path)
        start = file.seek(0, os.SEEK_END)
        return _Output(file, PrintedMetrics(self._names), time.monotonic(), start)

    def _start(self) -> Script:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            own_port = int(probe.getsockname()[1])
        env = script_environment(
            self._script,
            self._context,
            os.environ,
            {SDK_PORT: str(self._server.port), SDK_TOKEN: self._server.token},
            run_id=self._run_id,
            max_restarts=self._config.max_restarts,
            own_port=own_port,
            linux=sys.platform == "linux",
        )
        if not self._alone and can_host(self._script, env):
            env["TORCHELASTIC_USE_AGENT_STORE"] = "True"
            if self._rank == 0:
                self._store = HostedStore(self._script, env, int(env["MASTER_PORT"]))
        try:
            return Script(self._script.argv, env, self._script.folder)
        except OSError as error:
            raise UsageError(
                f"{self._script.python} could not be started ({error.strerror or error}).",
                "Choose another interpreter.",
                title="The script could not be started",
            ) from error

    def _watch(self, script: Script, output: _Output, life: LifeSigns) -> int:
        """Wait until the program has ended and its output is read; return its exit code."""
        while True:
            code = script.poll()
            self._charts.take(output.read())
            now = time.monotonic()
            if output.printed.has_pending and now - output.heard_at > QUIET_S:
                self._charts.take(output.printed.flush())
            while not self._inbox.empty():
                self._hear(self._inbox.get())
            if code is not None:
                break
            self._stop_harder(script, now)
            self._check_store(script)
            life.look(now, max(output.heard_at, self._spoke_at))
            self._tell(output)
            self._ledger.tick(now)
            self._server.poll(BUSY_POLL_S if self._ledger.is_waiting else POLL_S)
        self._server.poll(0.0)  # what it logged last
        self._charts.take([*output.read(), *output.printed.finish()])
        self._tell(output, ended=code == 0)
        return code

    def _tell(self, output: _Output, ended: bool = False) -> None:
        self._charts.tell_names()
        if self._rank == 0:
            self._charts.tell_unread(output.printed, ended)

    def _check_store(self, script: Script) -> None:
        try:
            if self._store is not None:
                self._store.check()
        except RankdeckError:
            # It would wait for the store for half an hour.
            script.end()
            raise

    # what the program says

    def _welcome(self) -> Mapping[str, Any]:
        config = {name: value for name, value in self._config.as_dict().items() if name != "options"}
        checkpoint = self._ledger.before.checkpoint
        return {
            "welcome": 1,
            "share": [0, 1] if self._alone else [self._rank, self._context.world_size],
            "seed": self._config.seed,
            "stop": self._stop_asked_at is not None,
            "config": {**config, **dict(self._config.options)},
            "checkpoint": checkpoint if checkpoint is not None and Path(checkpoint).exists() else None,
        }

    def _on_message(self, peer: Peer, message: Mapping[str, Any]) -> None:
        self._spoke_at = time.monotonic()
        if "log" in message:
            self._charts.take_log(message["log"], message.get("step"))
        elif "polls" in message:
            self._polls = True
        elif "alert" in message:
            self._reporter.event(
                "alert", kind="script", title=str(message["alert"]), cause=str(message.get("text", "")), next_step=""
            )
        elif "ask" in message:
            self._on_question(peer, message)

    def _on_question(self, peer: Peer, message: Mapping[str, Any]) -> None:
        def answer(**fields: Any) -> None:
            peer.answer(message, **fields)

        try:
            if message["ask"] == "data":
                self._ledger.ask_data(int(message["samples"]), _optional(message.get("chunk_size")), answer)
            elif message["ask"] == "claim":
                self._ledger.ask_claim(int(message["sequence"]), answer)
            elif message["ask"] == "commit":
                done = [[int(number) for number in pair] for pair in message["chunks"]]
                paths = (message.get("staged"), message.get("final"))
                self._ledger.ask_commit(done, _optional(message.get("step")), *paths, answer)
        except (KeyError, TypeError, ValueError) as error:
            answer(error=f"the question cannot be understood ({error})")

    # what the host says

    def _hear(self, message: Message) -> None:
        if isinstance(message, Stop):
            if self._stop_asked_at is None:
                self._stop_asked_at = time.monotonic()
                self._server.broadcast({"stop": True})
        elif isinstance(message, Finish):
            self._finish = True
        else:
            self._ledger.received(message)

    # stopping

    def _stop_harder(self, script: Script, now: float) -> None:
        """Climb one rung after the other: `should_stop`, the signal, the end."""
        limit_s, signal = self._script.stop_deadline_s, self._script.stop_signal
        if self._stop_asked_at is None or self._ended:
            return
        waited_s = now - self._stop_asked_at
        if waited_s >= limit_s:
            self._ended = True
            script.end()
            self._reporter.event(
                "alert",
                kind="script_ended",
                title="The script was ended",
                cause=f"{self._script.name} did not end within {limit_s:g} s.",
                next_step="Call rankdeck.should_stop() at each step, or raise the stop limit.",
            )
        elif not self._signalled and signal != "none":
            patient = signal == "auto" and self._polls
            if not patient or waited_s >= limit_s / 2:
                self._signalled = True
                script.interrupt(terminate=signal == "terminate")


def _optional(value: Any) -> int | None:
    return None if value is None else int(value)


def _own_failure(error: Exception) -> RankFailed:
    parts = error
    if not isinstance(parts, RankdeckError):
        cause = f"{type(error).__name__}: {error}"
        title = "Rankdeck's launcher of the script failed"
        parts = RankdeckError(cause, "Look at the rank's log and report it.", title=title)
    text = "".join(traceback.format_exception(error))[-50_000:]
    return RankFailed(usage=isinstance(error, UsageError), traceback=text, peer_lost=False, **parts.as_dict())
