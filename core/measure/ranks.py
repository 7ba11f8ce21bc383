"""Rank processes without a host that measure on request: one set of them for many requests, until one of them fails."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from core.config.config_file import to_json
from core.errors import RankdeckError
from core.files.atomic import read_json, write_atomic
from core.launch.plan import MeasureKind, RankCommand, file_url, plan_measuring
from core.launch.resolved import ResolvedRun
from core.machine.platform import Platform, rendezvous_folder
from core.measure.trial import Death, TrialResult, What, judge, read_answers
from core.parsing import parse_json
from core.processes import Child, ProcessTree
from core.processes.ask import read_answer
from core.processes.exit_codes import ended_by_force
from core.recipes.check import error_in
from core.records import RecordError, read_record
from core.training_python import training_python

# So long the other ranks may take to notice that one of them failed.
GRACE_S: Final = 3.0
# So long a set may take to import torch: seconds, on a busy Windows machine a minute.
START_S: Final = 180.0
# So much longer the first trial of a set may take: it prepares the data.
PREPARE_S: Final = 60.0
# So long killed processes may take to be gone.
END_S: Final = 5.0
_POLL_S: Final = 0.02
T = TypeVar("T")


class MeasurementError(RankdeckError):
    """A measurement's ranks gave no figures."""

    title = "The measurement failed"


class CancelledError(RankdeckError):
    """A measurement was ended by the person, or by a newer draft."""

    title = "The measurement was stopped"

    def __init__(self) -> None:
        super().__init__("It was cancelled before it was done.", "You can measure again at any time.")


@dataclass(frozen=True, slots=True)
class Answers:
    """Each rank's answer to a request, None where it gave none in time, and how ranks have died."""

    values: tuple[dict[str, Any] | None, ...]
    deaths: Mapping[int, Death]

    @property
    def failure(self) -> str:
        """How the first process that is gone ended; empty where all live."""
        return next((death.text for _, death in sorted(self.deaths.items())), "")

    def read(self, kind: type[T], what: str, limit_s: float) -> list[T]:
        """Return all ranks' answers as records.

        Args:
            kind: The record.
            what: Was measured, as the subject of a sentence.
            limit_s: The ranks' time.

        Raises:
            RankdeckError: A rank failed or was refused; one that waited for it fails after it.
        """
        doctor, cause = "Check this machine: rankdeck doctor", f"{what} could not be measured"
        if self.deaths:
            raise MeasurementError(f"{cause}: a rank {self.failure}.", doctor)
        for values in self.values:
            if (error := error_in(values or {}, MeasurementError)) is not None:
                raise error
        if None in self.values:
            raise MeasurementError(f"{cause}: the ranks did not finish within {limit_s:g} s.", doctor)
        try:
            return [read_record(kind, values) for values in self.values]
        except RecordError as error:
            raise MeasurementError(f"{cause}: the ranks gave no figures ({error}).", doctor) from error


class MeasuringRanks:
    """A set of ranks; to be closed, which ends them.

    Args:
        plan: Commands of the ranks, for a folder and a Python.
        cancelled: Asked now and then; True ends a measurement.

    Attributes:
        is_usable: Whether all ranks wait for the next request; else a fresh set is needed.
        start_s: Seconds that the processes took to start.
        took_s: Seconds of the newest request, without that.
    """

    def __init__(
        self,
        plan: Callable[[Path, str], Sequence[RankCommand]],
        platform: Platform,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        self._platform, self._cancelled = platform, cancelled
        self._temporary = tempfile.TemporaryDirectory(prefix="rankdeck-measure-", ignore_cleanup_errors=True)
        self._folder = Path(self._temporary.name)
        self._tree = ProcessTree()
        self._number = 0
        self._rendezvous: Path | None = None
        self._ranks: list[Child] = []
        self.is_usable, self.start_s, self.took_s = True, 0.0, 0.0
        try:
            for command in plan(self._folder, str(training_python().executable)):
                environment = command.environment(os.environ)
                self._ranks.append(self._tree.spawn(command.argv, environment, command.cwd, command.log))
        except BaseException:
            self.close()
            raise

    @classmethod
    def of_run(
        cls,
        run: ResolvedRun,
        kind: MeasureKind,
        cancelled: Callable[[], bool] = lambda: False,
        count: int | None = None,
    ) -> MeasuringRanks:
        """Start the ranks of a run, or its first `count`; devices, mode and environment stay in all requests."""
        return cls(lambda folder, python: plan_measuring(run, folder, python, kind)[:count], run.platform, cancelled)

    def __enter__(self) -> MeasuringRanks:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(
        self, values: Mapping[str, Any], limit_s: float, waiting: Callable[[Path], None] = lambda _: None
    ) -> Answers:
        """Put a request to all ranks. Blocks until all have answered, one has failed, or the time is over.

        Args:
            values: The request, with its `kind`. It gets a new `rendezvous`.
            limit_s: How long the answer may take once the processes are there.
            waiting: Called now and then with the first rank's folder. What it raises ends the request.

        Raises:
            CancelledError: `cancelled` said so; the set cannot be used any more.
        """
        self.is_usable = False
        if self._number == 0:
            began = time.monotonic()
            self._wait(self._are_ready, START_S)
            self.start_s = time.monotonic() - began
        self._number += 1
        self._rendezvous = rendezvous_folder(self._folder) / f".rendezvous-{secrets.token_hex(4)}"
        asked = {**values, "rendezvous": file_url(self._rendezvous, self._platform)}
        write_atomic(self._folder / f"request-{self._number}.json", json.dumps(asked), durable=False)
        began = time.monotonic()
        found = self._answers(limit_s, lambda: waiting(self._folder / "rank0"))
        self.took_s = time.monotonic() - began
        deaths = {
            number: Death(read_answer(rank).failure, ended_by_force(code))
            for number, rank in enumerate(self._ranks)
            if (code := rank.poll()) is not None
        }
        self.is_usable = not deaths and None not in found
        self._forget_rendezvous()
        return Answers(tuple(found), deaths)

    def make_trial(
        self, run: ResolvedRun, seconds: float, limit_s: float, own: ResolvedRun | None = None, what: What = "steps"
    ) -> TrialResult:
        """Make real steps. Blocks.

        Args:
            run: The set's with the settings to try.
            seconds: How long steps are timed.
            limit_s: After that the trial is given up.
            own: The same run with another batch, whose steps are made in turns with those of `run`, for a comparison.
            what: Steps cut short, whole steps, or sums.

        Raises:
            CancelledError: `cancelled` said so; the set cannot be used any more.
        """
        asked = {
            "kind": "trial",
            "config": parse_json(to_json(run.config)),
            "mode": run.mode.value,
            "engine": run.choice.engine,
            "backend": run.backend,
            "seconds": seconds,
            "what": what,
            "compiles": run.compiles,
            **_batch_values(run),
            "own": None if own is None else _batch_values(own),
        }
        found = self.ask(asked, limit_s + (PREPARE_S if self._number == 0 else 0.0))
        answers = read_answers(found.values)
        if run.backend == "nccl" and any(answer is not None and answer.outcome != "measured" for answer in answers):
            self.is_usable = False  # a rank may wait in the driver
        return judge(answers, found.deaths)

    def close(self) -> None:
        """End the ranks and remove their files."""
        deadline = time.monotonic() + END_S
        self._tree.kill(deadline)
        # A killed process counts as gone while its threads are still ending; its exit code comes a moment later.
        while any(rank.poll() is None for rank in self._ranks) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        self._tree.close()
        self._forget_rendezvous()
        self._temporary.cleanup()

    def _answers(self, limit_s: float, waiting: Callable[[], None]) -> list[dict[str, Any] | None]:
        noticed: float | None = None

        def is_over() -> bool:
            nonlocal noticed
            waiting()
            answers = [self._answer(rank) for rank in range(len(self._ranks))]
            now = time.monotonic()
            if noticed is None and (self._has_ended() or any(_has_failed(answer) for answer in answers)):
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

    def _are_ready(self) -> bool:
        ranks = range(len(self._ranks))
        return self._has_ended() or all((self._folder / f"rank{rank}" / "ready").exists() for rank in ranks)

    def _has_ended(self) -> bool:
        return any(rank.poll() is not None for rank in self._ranks)

    def _answer(self, rank: int) -> dict[str, Any] | None:
        path = self._folder / f"rank{rank}" / f"answer-{self._number}.json"
        if not path.exists():
            return None
        try:
            found = read_json(path)
        except RankdeckError:
            return None
        return found if isinstance(found, dict) else None

    def _forget_rendezvous(self) -> None:
        if self._rendezvous is not None:
            # A scanner holds it, and nothing reads it any more.
            with contextlib.suppress(OSError):
                self._rendezvous.unlink(missing_ok=True)


def _batch_values(run: ResolvedRun) -> dict[str, Any]:
    return {"micro_batch": run.batch.micro, "accumulation": run.batch.accumulation}


def _has_failed(values: Mapping[str, Any] | None) -> bool:
    return values is not None and (bool(values.get("cause")) or values.get("outcome", "measured") != "measured")
