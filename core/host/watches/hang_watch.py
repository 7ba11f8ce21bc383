"""Hang watch: notices ranks in training that report nothing for long, reports where each is, and applies the policy."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from core.errors import RankdeckError, sentences
from core.files.links import append_unlinked
from core.formatting import duration, listed, number
from core.host.pace import PATIENCE, SHORTEST_S, AwakeClock
from core.host.ranks import Rank, Ranks
from core.host.services import HostServices, logging_failure
from core.host.states import AttemptPhase
from core.host.watches.hang_diagnosis import HangDiagnosis, RankView, diagnose, next_step, title
from core.host.watches.watch import Watch
from core.processes import process_state
from core.processes.process_state import ProcessState, look_at, program_of
from core.protocol.messages import RankFailed, Stacks, StacksPlease

log = logging.getLogger(__name__)

ANSWER_LIMIT_S: Final = 5.0
_ELSEWHERE: Final = "is on another machine, and cannot be looked at from here"
# In front of each line of a stack in a rank's log: nothing that the rank has printed.
_MARK: Final = "rankdeck: | "


class HangWatch(Watch):
    """Checks how long each rank has been silent, and reports late ones, each once until all are heard again.

    `limit_s` is the longest silence, None for each rank's own pace; `is_held`: ranks are not read just now.
    """

    def __init__(
        self,
        ranks: Ranks,
        limit_s: float | None,
        response: HangResponse,
        is_held: Callable[[], bool] = lambda: False,
        is_stopped: Callable[[int], bool] = process_state.is_stopped,
    ) -> None:
        self._ranks = ranks
        self._limit_s = limit_s
        self._response = response
        self._is_held = is_held
        self._is_stopped = is_stopped
        self._clock = AwakeClock()
        self._named: set[int] = set()
        self._is_over = False

    def heard(self, rank: Rank, now: float, *, is_step: bool = False) -> None:
        """Note a report of a rank, `now` on the monotonic clock; called before the rank takes it."""
        in_training = rank.trains or rank.phase == "ready"
        was_busy = rank.takes_its_time or not in_training
        rank.pace.heard(self._read_clock(now), is_step=is_step, was_busy=was_busy)

    def take(self, rank: Rank, lines: Sequence[Mapping[str, Any]]) -> None:
        self.heard(rank, time.monotonic(), is_step=any(line["event"] == "step" for line in lines))

    def tick(self, now: float, phase: AttemptPhase) -> None:
        if self._is_over or not phase.is_working:
            return
        moment = self._read_clock(now)
        for rank in self._ranks:
            if rank.first_step is not None and not rank.trains:
                rank.pace.rest(moment)
        late = [rank for rank in self._ranks if self.is_late(rank)]
        new = [rank for rank in late if rank.number not in self._named]
        if new:
            self._named |= {rank.number for rank in late}
            self._response.begin(late, max(self.silent_s(rank) for rank in late))
        elif self._named and not late:
            self._named.clear()
            self._response.over()

    def cancel(self) -> None:
        self._is_over = True
        self._response.cancel()

    async def close(self) -> None:
        await self._response.close()

    def is_late(self, rank: Rank) -> bool:
        """Whether a rank has been silent for too long. Of ranks that wait for each other, all have to be.

        A suspended process does nothing that may last long, so it gets no extra time.
        """
        if self._is_overdue(rank, is_busy=False) and rank.pid is not None and self._is_stopped(rank.pid):
            return True
        if not self._ranks.connected or self._is_left_behind(rank):
            return self._is_overdue(rank, is_busy=rank.takes_its_time)
        watched = [other for other in self._ranks if other.trains or other.begins]
        return rank in watched and all(self._is_overdue(other, is_busy=other.takes_its_time) for other in watched)

    def _is_left_behind(self, rank: Rank) -> bool:
        """Whether others have made steps for long without a rank that has made none: they do not wait for it."""
        heard_at, limit_s = rank.pace.heard_at or 0.0, self._ranks.run.config.start_timeout_s
        stepped = (other.pace.stepped_at for other in self._ranks)
        return rank.begins and any(at is not None and at >= heard_at + limit_s for at in stepped)

    def silent_s(self, rank: Rank) -> float:
        return rank.pace.silent_s(self._clock.now)

    def _is_overdue(self, rank: Rank, *, is_busy: bool) -> bool:
        silent_s = self.silent_s(rank)
        if rank.begins:
            # One that charts nothing in any rank may be well: it is only known to sleep. So it gets more time.
            is_alone = all(other.first_step is None for other in self._ranks)
            return silent_s > self._ranks.run.config.start_timeout_s * (PATIENCE if is_busy or is_alone else 1)
        if not rank.trains or (self._limit_s is None and silent_s <= SHORTEST_S):  # its own pace allows no less
            return False
        limit_s = rank.pace.limit_s(self._limit_s, is_busy=is_busy)
        return limit_s is not None and silent_s > limit_s

    def _read_clock(self, now: float) -> float:
        return self._clock.read(now, counts=not self._is_held())


class HangResponse:
    def __init__(self, services: HostServices, ranks: Ranks) -> None:
        self._services = services
        self._ranks = ranks
        self._config = ranks.run.config
        self._answers: dict[int, Stacks] = {}
        self._answered = asyncio.Event()
        self._responding: asyncio.Task[None] | None = None
        self._reported = False

    def begin(self, late: Sequence[Rank], silent_s: float) -> None:
        if self._responding is None or self._responding.done():
            self._responding = asyncio.get_running_loop().create_task(self._respond(late, silent_s))
            self._responding.add_done_callback(logging_failure("a hang could not be reported"))

    def answered(self, rank: Rank, message: Stacks) -> None:
        self._answers[rank.number] = message
        self._answered.set()

    def over(self) -> None:
        if self._reported:
            self._reported = False
            self._services.status.change_phase("")
            self._services.stream.emit("alert_over", kind="hang", text="All devices report again.")

    def cancel(self) -> None:
        if self._responding is not None:
            self._responding.cancel()

    async def close(self) -> None:
        self.cancel()
        if self._responding is not None:
            await asyncio.wait([self._responding])

    async def _respond(self, late: Sequence[Rank], silent_s: float) -> None:
        heard = {rank.number: rank.pace.heard_at for rank in late}
        views = await self._look(late)
        still = [rank for rank in late if (rank.trains or rank.begins) and rank.pace.heard_at == heard[rank.number]]
        if not still or (self._ranks.connected and len(still) < len(late)):
            return  # it was only slow
        diagnosis = diagnose(views, connected=self._ranks.connected)
        await self._log_stacks(views)
        self._report(views, diagnosis, silent_s)

    # where they are

    async def _look(self, late: Sequence[Rank]) -> list[RankView]:
        """All ranks by their answers, or by their process states where they do not answer."""
        self._answers.clear()
        log.info("hang: all ranks are asked for their stacks")
        asked = [] if self._ranks.run.recipe.self_contained else [r for r in self._ranks if r.connection is not None]
        for rank in asked:
            rank.send(StacksPlease())
        states = await self._process_states()
        missing = {rank.number for rank in asked if not states[rank.number].stopped}
        await self._await_answers(missing)
        return [
            RankView(
                rank.number,
                rank.device,
                rank in late,
                self._answers.get(rank.number),
                rank in asked,
                states[rank.number].text,
                states[rank.number].stopped,
            )
            for rank in self._ranks
        ]

    async def _await_answers(self, missing: set[int]) -> None:
        try:
            async with asyncio.timeout(ANSWER_LIMIT_S):
                while not missing <= self._answers.keys():
                    self._answered.clear()
                    await self._answered.wait()
        except TimeoutError:
            log.warning("ranks %s do not answer", sorted(missing - self._answers.keys()))

    async def _process_states(self) -> Mapping[int, ProcessState]:
        states = await asyncio.gather(*(asyncio.to_thread(self._state, rank) for rank in self._ranks))
        return {rank.number: state for rank, state in zip(self._ranks, states, strict=True)}

    def _state(self, rank: Rank) -> ProcessState:
        if rank.pid is None:
            return ProcessState(False, _ELSEWHERE)
        return look_at(program_of(rank.pid) if self._ranks.run.recipe.self_contained else rank.pid)

    # what is said of it

    async def _log_stacks(self, views: Sequence[RankView]) -> None:
        for view in views:
            log.warning("hang: %s", view.text)
            text = view.stacks.text if view.stacks is not None else ""
            await self._services.on_disk(_append, self._ranks[view.rank].command.log, [view.text, *text.splitlines()])

    def _report(self, views: Sequence[RankView], diagnosis: HangDiagnosis, silent_s: float) -> None:
        devices = [self._ranks[number].device for number in diagnosis.culprits]
        others = self._ranks.connected and len(devices) < len(self._ranks.all)
        heading = title(devices, diagnosis, connected=others)
        cause = self._cause(views, diagnosis, silent_s)
        logs = listed([f"logs/{view_log.name}" for view_log in self._logs(views)])
        self._reported = True
        self._services.status.change_phase(f"{listed(devices)} may hang: see Alerts")
        self._services.stream.emit(
            "alert",
            kind="hang",
            step=self._services.status.state.step,
            ranks=list(diagnosis.culprits),
            certain=diagnosis.certain,
            policy=self._config.hang_policy,
            silent_s=round(silent_s, 1),
            places={str(view.rank): view.text for view in views},
            title=heading,
            cause=cause,
            next_step=next_step(self._config.hang_policy, logs, self._resumes()),
        )
        if self._config.hang_policy != "warn":
            self._fail(diagnosis, cause, logs)

    def _cause(self, views: Sequence[RankView], diagnosis: HangDiagnosis, silent_s: float) -> str:
        late = [self._ranks[view.rank] for view in views if view.late]
        places = ("before its first step" if rank.first_step is None else f"step {rank.step}" for rank in late)
        where = listed([f"{rank.device} ({place})" for rank, place in zip(late, places, strict=True)])
        typical = [s for rank in late if (s := rank.pace.typical_s) is not None]
        usual = f"; a step usually takes {_seconds(max(typical))}" if typical else ""
        unclear = "" if diagnosis.certain or not self._ranks.connected else "It is not clear which device is at fault."
        texts = [view.text for view in views if view.late or self._ranks.connected]
        return sentences(f"Nothing was reported by {where} for {duration(silent_s)}{usual}.", *texts, unclear)

    def _fail(self, diagnosis: HangDiagnosis, cause: str, logs: str) -> None:
        """Make the attempt fail because of the ranks that hang; of several suspects, one is enough."""
        now = time.monotonic()
        for culprit in diagnosis.culprits if diagnosis.certain else diagnosis.culprits[:1]:
            failure = self._ranks.failure(self._ranks[culprit], now)
            failure.finding, failure.hung = "made no progress", True
            failure.report = RankFailed("The process hangs", cause, f"Look at {logs} for the stacks.")

    def _logs(self, views: Sequence[RankView]) -> list[Path]:
        return [self._ranks[view.rank].command.log for view in views]

    def _resumes(self) -> str:
        if self._ranks.run.recipe.self_contained:
            return "the script starts again and decides where it continues."
        return "the run continues from its last checkpoint."


def _seconds(value: float) -> str:
    return f"{number(max(value, 0.01), 2)} s" if value < 60 else duration(value)


def _append(file: Path, lines: Sequence[str]) -> None:
    text = "".join(f"{_MARK}{line}\n" for line in lines)
    try:
        with append_unlinked(file) as log_file:
            log_file.write(text.encode("utf-8", errors="replace"))
    except (OSError, RankdeckError) as error:
        log.warning("stacks could not be written into %s: %s", file.name, error)
