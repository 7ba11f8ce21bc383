"""Rank processes that make trials: one set of them for many trials, until one of them fails for good."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

from core.config.config_file import to_json
from core.errors import RankdeckError
from core.files.atomic import read_json, write_atomic
from core.launch.plan import file_url, plan_trials
from core.launch.resolved import ResolvedRun
from core.machine.platform import rendezvous_folder
from core.parsing import parse_json
from core.processes import Child, ProcessTree
from core.processes.ask import read_answer
from core.processes.exit_codes import ended_by_force
from core.records import RecordError, read_record
from core.training_python import training_python
from core.trials.answers import Answered, Death, RankAnswer, judge

GRACE_S: Final = 3.0
"""So long the other ranks may take to notice that one of them failed."""
START_S: Final = 180.0
"""So long a set may take to import torch: seconds, on a busy Windows machine a minute."""
PREPARE_S: Final = 60.0
"""So much longer its first trial may take: it prepares the data."""
END_S: Final = 5.0
"""So long killed processes may take to be gone."""
_POLL_S: Final = 0.02
What = Literal["steps", "whole_steps", "memory", "sums"]
"""Steps with at most two micro-batches made, the others counted; with all of them; memory beside all of them; sums of
tensors over the ranks."""


class CancelledError(RankdeckError):
    """The person has ended the trials."""

    title = "The trials were stopped"

    def __init__(self) -> None:
        super().__init__("They were stopped before they were done.", "You can start them again at any time.")


class TrialRanks:
    """A set of ranks; to be closed, which ends them.

    Args:
        run: What is tried: devices, mode and environment are the same in all trials.
        cancelled: Asked now and then; True ends a trial.

    Attributes:
        is_usable: Whether all ranks wait for the next trial; else a fresh set is needed.
        start_s: Seconds that the processes took to start.
        took_s: Seconds of the newest trial, without that.
    """

    def __init__(self, run: ResolvedRun, cancelled: Callable[[], bool] = lambda: False) -> None:
        self._cancelled = cancelled
        self._temporary = tempfile.TemporaryDirectory(prefix="rankdeck-trials-", ignore_cleanup_errors=True)
        self._folder = Path(self._temporary.name)
        self._tree = ProcessTree()
        self._number = 0
        self._rendezvous: list[Path] = []
        self._ranks: list[Child] = []
        self.is_usable, self.start_s, self.took_s = True, 0.0, 0.0
        try:
            for command in plan_trials(run, self._folder, str(training_python().executable)):
                environment = command.environment(os.environ)
                self._ranks.append(self._tree.spawn(command.argv, environment, command.cwd, command.log))
        except BaseException:
            self.close()
            raise

    def make(
        self, run: ResolvedRun, seconds: float, limit_s: float, own: ResolvedRun | None = None, what: What = "steps"
    ) -> Answered:
        """Makes a trial. Blocks.

        Args:
            run: `self`'s with the settings to try.
            seconds: How long steps are timed.
            limit_s: After that the trial is given up.
            own: Another batch, compiled or not, whose steps are made in turns with those of `run`, for a comparison.
            what: What is measured.

        Raises:
            CancelledError: `cancelled` said so; the set cannot be used any more.
        """
        is_first = self._number == 0
        self._number += 1
        self.is_usable = False
        if is_first:
            began = time.monotonic()
            self._wait(lambda: self._are_there("ready"), START_S)
            self.start_s = time.monotonic() - began
        self._ask(run, seconds, own, what)
        began = time.monotonic()
        answers = self._answers(limit_s + (PREPARE_S if is_first else 0.0))
        self.took_s = time.monotonic() - began
        deaths = {
            number: Death(read_answer(rank).failure, ended_by_force(code))
            for number, rank in enumerate(self._ranks)
            if (code := rank.poll()) is not None
        }
        broke = run.backend == "nccl" and any(_failed(answer) for answer in answers)  # it may wait in the driver
        self.is_usable = not deaths and None not in answers and not broke
        self._forget_rendezvous()
        return judge(answers, deaths)

    def close(self) -> None:
        """Ends the ranks and removes what they wrote."""
        deadline = time.monotonic() + END_S
        self._tree.kill(deadline)
        # A killed process counts as gone while its threads are still ending; its exit code comes a moment later.
        while any(rank.poll() is None for rank in self._ranks) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        self._tree.close()
        self._forget_rendezvous()
        self._temporary.cleanup()

    def _answers(self, limit_s: float) -> list[RankAnswer | None]:
        """Each rank's answer, as far as they come in time."""
        noticed: float | None = None

        def is_over() -> bool:
            nonlocal noticed
            answers = [self._answer(rank) for rank in range(len(self._ranks))]
            now = time.monotonic()
            if noticed is None and (self._has_ended() or any(_failed(answer) for answer in answers)):
                noticed = now
            late = noticed is not None and now >= noticed + GRACE_S
            return late or all(answer is not None for answer in answers)

        self._wait(is_over, limit_s)
        return [self._answer(rank) for rank in range(len(self._ranks))]

    def _wait(self, is_over: Callable[[], bool], limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        while not is_over() and time.monotonic() < deadline:
            if self._cancelled():
                raise CancelledError
            time.sleep(_POLL_S)

    def _are_there(self, name: str) -> bool:
        """Whether every rank has left such a file, or one has ended."""
        ranks = range(len(self._ranks))
        return self._has_ended() or all((self._folder / f"rank{rank}" / name).exists() for rank in ranks)

    def _has_ended(self) -> bool:
        return any(rank.poll() is not None for rank in self._ranks)

    def _ask(self, run: ResolvedRun, seconds: float, own: ResolvedRun | None, what: What) -> None:
        meeting = rendezvous_folder(self._folder) / f".rendezvous-{secrets.token_hex(4)}"
        self._rendezvous.append(meeting)
        asked = {
            "config": parse_json(to_json(run.config)),
            "mode": run.mode.value,
            "engine": run.choice.engine,
            "backend": run.backend,
            "rendezvous": file_url(meeting, run.platform) if run.backend else "",
            "micro_batch": run.batch.micro,
            "accumulation": run.batch.accumulation,
            "seconds": seconds,
            "what": what,
            "compiles": run.compiles,
            "own": None
            if own is None
            else {
                "micro_batch": own.batch.micro,
                "accumulation": own.batch.accumulation,
                "compiles": own.compiles,
            },
        }
        write_atomic(self._folder / f"trial-{self._number}.json", json.dumps(asked), durable=False)

    def _answer(self, rank: int) -> RankAnswer | None:
        path = self._folder / f"rank{rank}" / f"result-{self._number}.json"
        if not path.exists():
            return None
        try:
            return read_record(RankAnswer, read_json(path))
        except (RecordError, RankdeckError):
            return None

    def _forget_rendezvous(self) -> None:
        for path in self._rendezvous:
            with contextlib.suppress(OSError):  # a scanner holds it, and nothing reads it any more
                path.unlink(missing_ok=True)
        self._rendezvous.clear()


def _failed(answer: RankAnswer | None) -> bool:
    return answer is not None and answer.outcome != "measured"
