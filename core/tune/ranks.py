"""Rank processes that make trials: one set of them for many trials, until one of them fails for good."""

from __future__ import annotations

import json
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from core.config.config_file import to_json
from core.errors import RankdeckError
from core.files.atomic import read_json, write_atomic
from core.launch.plan import RankCommand, file_url, plan_trials
from core.launch.resolved import ResolvedRun
from core.machine.platform import rendezvous_folder
from core.parsing import parse_json
from core.processes import Child, ProcessTree
from core.processes.ask import read_answer
from core.processes.exit_codes import ended_by_force
from core.records import RecordError, read_record
from core.tune.answers import Answered, Death, RankAnswer, judge

GRACE_S: Final = 3.0
"""So long the other ranks may take to notice that one of them failed."""
START_S: Final = 60.0
"""Of a set's first trial beyond its own time: torch is imported, data prepared."""
_POLL_S: Final = 0.02


class CancelledError(RankdeckError):
    """The person has ended the search."""

    title = "Tuning was stopped"

    def __init__(self) -> None:
        super().__init__("It was stopped before it was done.", "You can tune again at any time.")


class TrialRanks:
    """A set of ranks; to be closed, which ends them.

    Args:
        run: What is tuned: devices, mode and environment are the same in all trials.
        cancelled: Asked now and then; True ends a trial.

    Attributes:
        is_usable: Whether all ranks wait for the next trial; else a fresh set is needed.
        is_fresh: No trial was asked for yet.
    """

    def __init__(self, run: ResolvedRun, cancelled: Callable[[], bool] = lambda: False) -> None:
        self._run, self._cancelled = run, cancelled
        self._temporary = tempfile.TemporaryDirectory(prefix="rankdeck-tune-", ignore_cleanup_errors=True)
        self._folder = Path(self._temporary.name)
        self._tree = ProcessTree()
        self._number = 0
        self._rendezvous: list[Path] = []
        self.is_usable = True
        try:
            self._commands = plan_trials(run, self._folder, sys.executable)
            self._children = [self._start(command) for command in self._commands]
        except BaseException:
            self.close()
            raise

    @property
    def is_fresh(self) -> bool:
        """Whether the first trial is still to come."""
        return self._number == 0

    def make(self, run: ResolvedRun, seconds: float, limit_s: float) -> Answered:
        """Makes a trial. Blocks.

        Args:
            run: `self`'s with the settings to try.
            seconds: How long steps are timed.
            limit_s: After that the trial is given up.

        Raises:
            CancelledError: `cancelled` said so; the set cannot be used any more.
        """
        deadline = time.monotonic() + limit_s + (START_S if self.is_fresh else 0.0)
        self._number += 1
        self._ask(run, seconds)
        self.is_usable = False
        noticed: float | None = None
        while True:
            if self._cancelled():
                raise CancelledError
            ended = [child.poll() for child in self._children]
            answers = [self._answer(rank) for rank in range(len(self._children))]
            if all(answer is not None for answer in answers):
                break
            trouble = any(code is not None for code in ended) or any(_failed(answer) for answer in answers)
            now = time.monotonic()
            noticed = noticed or (now if trouble else None)
            if now >= deadline or (noticed is not None and now >= noticed + GRACE_S):
                break
            time.sleep(_POLL_S)
        deaths = {
            rank: Death(read_answer(child).failure, ended_by_force(code))
            for rank, child in enumerate(self._children)
            if (code := child.poll()) is not None
        }
        broke = run.backend == "nccl" and any(_failed(answer) for answer in answers)  # it may wait in the driver
        self.is_usable = not deaths and None not in answers and not broke
        self._forget_rendezvous()
        return judge(answers, deaths)

    def close(self) -> None:
        """Ends the ranks and removes what they wrote."""
        self._tree.close()
        self._forget_rendezvous()
        self._temporary.cleanup()

    def _start(self, command: RankCommand) -> Child:
        return self._tree.spawn(command.argv, command.environment(os.environ), command.cwd, command.log)

    def _ask(self, run: ResolvedRun, seconds: float) -> None:
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
            path.unlink(missing_ok=True)
        self._rendezvous.clear()


def _failed(answer: RankAnswer | None) -> bool:
    return answer is not None and answer.outcome != "measured"
