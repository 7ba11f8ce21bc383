"""Why an attempt failed: of all signs the first by time is the root cause, the later ones are its echo."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.processes import describe_exit, ended_by_force
from core.protocol.messages import RankFailed

SETTLE_S: Final = 1.5
"""How long after the first sign others are waited for: a killed rank's socket closes before its exit code is known."""
_TAIL_BYTES: Final = 8 << 10
_TAIL_LINES: Final = 8
_OUR_NOISE: Final = re.compile(r"^\s*$|^rankdeck: the run's host is gone")
# What collectives say when the *other* end has gone. Such a failure is never the root of one that came near it.
_ECHO: Final = re.compile(
    r"connection (was )?(closed|reset|aborted)( by peer)?|broken pipe|socket (closed|timeout)|gloo/transport|"
    r"an established connection was aborted|existing connection was forcibly closed|NCCL (communicator|watchdog)|"
    r"remote process exited|peer (is )?gone|Timed out waiting .*(recv|send) operation",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Sign:
    """One rank's failure as far as it is known.

    Attributes:
        rank: Who.
        at: When it was first noticed, in seconds on a monotonic clock.
        step: Optimizer steps it had reported.
        phase: Where it was, as it last said.
        returncode: How its process ended; None while it has not.
        said: Its own last words.
        what: The host's own finding, where that is what failed ("made no first step within 180 s").
        log: The rank's log.
        tail: The log's last lines.
    """

    rank: int
    at: float
    step: int = 0
    phase: str = ""
    returncode: int | None = None
    said: RankFailed | None = None
    what: str = ""
    log: Path = Path()
    tail: tuple[str, ...] = ()

    @property
    def is_echo(self) -> bool:
        """It only says that another rank was no longer there."""
        words = " ".join(self.tail[-3:]) if self.said is None else f"{self.said.cause} {self.said.traceback[-2000:]}"
        crashed = self.said is None and self.returncode is not None and self.returncode < 0
        return not crashed and not self.what and _ECHO.search(words) is not None

    @property
    def was_killed(self) -> bool:
        """Its process was ended by a signal (Windows: by another process), or crashed, without a word of its own."""
        return self.said is None and not self.what and self.returncode is not None and ended_by_force(self.returncode)

    @property
    def usage(self) -> bool:
        """The person's input is at fault; no fallback can help."""
        return self.said is not None and self.said.usage


def root_cause(signs: Sequence[Sign]) -> Sign:
    """The failure that the others followed from.

    Args:
        signs: At least one.
    """
    ordered = sorted(signs, key=lambda sign: sign.at)
    return next((sign for sign in ordered if not sign.is_echo), ordered[0])


def describe(root: Sign, signs: Sequence[Sign], resume: str) -> dict[str, str]:
    """Title, cause and next step of a failed attempt, for `state.json` and the `failed` event.

    Args:
        root: From `root_cause`.
        signs: All of them; the others are named as echo.
        resume: The sentence that says what resuming would go on from.
    """
    followers = [str(sign.rank) for sign in signs if sign.rank != root.rank]
    echo = f" Rank {' and rank '.join(followers)} ended because of it." if followers else ""
    if root.said is not None:
        title = f"Rank {root.rank}: {root.said.title}"
        cause = root.said.cause
        if echo and not cause.endswith((".", "!", "?", "…", "”")):  # a script's own exception ends as it likes
            cause += "."
        return {"title": title, "cause": cause + echo, "next_step": _joined(root.said.next_step, resume)}
    at = f"after step {root.step}" if root.step else f"before its first step{f' ({root.phase})' if root.phase else ''}"
    if root.what:
        cause = f"Rank {root.rank} {root.what} ({at})."
    else:
        cause = f"Rank {root.rank}, {at}: {describe_exit(1 if root.returncode is None else root.returncode)}."
    if root.tail:
        cause += f" Its last output: “{root.tail[-1]}”."
    return {
        "title": f"Rank {root.rank} exited unexpectedly",
        "cause": cause + echo,
        "next_step": _joined(f"Look at {root.log.parent.name}/{root.log.name}.", resume),
    }


def last_lines(log: Path) -> tuple[str, ...]:
    """The last few lines of a rank's log that say something; none when it cannot be read."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ()
    lines = [line.strip()[:500] for line in text.splitlines() if not _OUR_NOISE.match(line)]
    return tuple(lines[-_TAIL_LINES:])


def _joined(*sentences: str) -> str:
    return " ".join(sentence.strip() for sentence in sentences if sentence.strip())
