"""Root cause of a failed attempt: the first rank failure by time that is not a secondary failure."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.errors import sentences
from core.held_files import open_binary
from core.processes import describe_exit, ended_by_force, exit_advice, is_crash
from core.protocol.messages import RankFailed

# Wait after the first failure: a killed rank's socket closes before its exit code is known.
_SETTLE_S: Final = 1.5
# Where all that is known so far followed from the loss of a rank: that rank's own end comes within this.
_ROOT_LIMIT_S: Final = 5.0
_TAIL_BYTES: Final = 8 << 10
_TAIL_LINES: Final = 8
_OUR_NOISE: Final = re.compile(r"^\s*$|^rankdeck: (the run's host is gone|\| )")
# Error texts of torch, gloo, NCCL and sockets when the *other* end has gone: a foreign exception has no field for it.
_PEER_LOST: Final = re.compile(
    r"connection (was )?(closed|reset|aborted)( by peer)?|broken pipe|socket (closed|timeout)|gloo/transport|"
    r"an established connection was aborted|existing connection was forcibly closed|NCCL (communicator|watchdog)|"
    r"remote process exited|Timed out waiting .*(recv|send) operation",
    re.IGNORECASE,
)


@dataclass(slots=True)
class RankFailure:
    """One rank's failure as far as it is known.

    Attributes:
        at: When it was first noticed, in seconds on a monotonic clock.
        finding: The host's own finding, where that is the failure ("made no first step within 180 s").
        hung: It made no progress, and the host ends it for that (`hang_policy`).
    """

    rank: int
    at: float
    device: str = ""
    step: int = 0
    phase: str = ""
    returncode: int | None = None
    report: RankFailed | None = None
    finding: str = ""
    hung: bool = False
    log: Path = Path()
    tail: tuple[str, ...] = ()

    @property
    def is_secondary(self) -> bool:
        """Whether it followed from the loss of another rank, so that it is never the root cause of several."""
        if self.finding:
            return False
        if self.report is not None:
            foreign = f"{self.report.cause} {self.report.traceback[-2000:]}"
            return self.report.peer_lost or _PEER_LOST.search(foreign) is not None
        crashed = self.returncode is not None and is_crash(self.returncode)
        return not crashed and _PEER_LOST.search(" ".join(self.tail[-3:])) is not None

    @property
    def was_killed(self) -> bool:
        """Whether its process was ended by a signal (Windows: by another process), or crashed, without a report."""
        if self.report is not None or self.finding or self.returncode is None:
            return False
        return ended_by_force(self.returncode)

    @property
    def usage(self) -> bool:
        return self.report is not None and self.report.usage

    @property
    def kind(self) -> str:
        return "" if self.report is None else self.report.kind


def settle_limit_s(failures: Collection[RankFailure]) -> float:
    """Seconds from the first failure until no other is expected to be its cause."""
    return _ROOT_LIMIT_S if all(failure.is_secondary for failure in failures) else _SETTLE_S


def root_cause(failures: Sequence[RankFailure]) -> RankFailure:
    ordered = sorted(failures, key=lambda failure: failure.at)
    return next((failure for failure in ordered if not failure.is_secondary), ordered[0])


def describe(root: RankFailure, failures: Sequence[RankFailure], resume: str) -> dict[str, str]:
    """Title, cause and next step of a failed attempt; `resume` is the sentence with the place to continue from."""
    followers = [failure.device for failure in failures if failure.rank != root.rank]
    secondary = f"{_processes_on(followers)} ended because of it." if followers else ""
    log = f"{root.log.parent.name}/{root.log.name}"
    if root.report is not None:
        title = f"{root.device}: {root.report.title}"
        cause = sentences(root.report.cause, secondary)
        error = {"title": title, "cause": cause, "next_step": sentences(root.report.next_step, resume)}
        if root.report.window_step:
            error["window_step"] = sentences(root.report.window_step, resume)
        return {**error, "log": log}
    at = f"after step {root.step}" if root.step else f"before its first step{f' ({root.phase})' if root.phase else ''}"
    advice = ""
    if root.finding:
        cause = f"{_processes_on([root.device])} {root.finding} ({at})."
    else:
        code = 1 if root.returncode is None else root.returncode
        cause = f"{_processes_on([root.device])}, {at}: {describe_exit(code)}."
        advice = exit_advice(code)
    if root.tail:
        cause += f" Its last output: “{root.tail[-1]}”."
    return {
        "title": f"{_processes_on([root.device])} exited unexpectedly",
        "cause": sentences(cause, secondary),
        "next_step": sentences(advice, f"Look at {log}.", resume),
        "log": log,
    }


def _processes_on(devices: Sequence[str]) -> str:
    return f"The process{'es' if len(devices) > 1 else ''} on {' and '.join(devices)}"


def last_lines(log: Path) -> tuple[str, ...]:
    try:
        with open_binary(log) as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ()
    lines = [line.strip()[:500] for line in text.splitlines() if not _OUR_NOISE.match(line)]
    return tuple(lines[-_TAIL_LINES:])
