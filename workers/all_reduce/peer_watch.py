"""Waits for other ranks' words in shared memory: short for a quick one, cheap for a late one, bounded for none."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Final

from core.errors import PeerLostError, RankdeckError
from core.processes.identity import ProcessId, is_alive
from workers.all_reduce.shared_arena import LINE_COUNTERS

# Looks without giving the core away: about two microseconds. Longer spinning takes from ranks that share the core.
SPINS: Final = 30
# Looks between which the core and the interpreter lock are given away: 0.2 ms on a quiet machine.
YIELDS: Final = 100
FIRST_SLEEP_S: Final = 50e-6
LONGEST_SLEEP_S: Final = 1e-3
ALIVE_EVERY_S: Final = 0.5

# `time.sleep(0)` takes 77 µs on Linux, and is just this on Windows.
give_core_away: Final[Callable[[], None]] = getattr(os, "sched_yield", None) or (lambda: time.sleep(0))


class State(IntEnum):
    TRAINING = 0
    LEFT = 1
    FAILED = 2


class Word(IntEnum):
    """Places of a rank's counters in the header."""

    PUBLISHED = 0
    REDUCED = 1
    FINISHED = 2
    OFFERED = 3
    SUMMED = 4
    STATE = 8


class PeerSilentError(RankdeckError):
    title = "Another device does not answer"


class AllReduceClosedError(Exception):
    pass


class PeerWatch:
    """Waits for counters of the other ranks; `timeout_s`: how long a rank that lives may keep the others waiting."""

    def __init__(self, header: memoryview, rank: int, processes: Sequence[ProcessId], timeout_s: float) -> None:
        self._header = header
        self._rank = rank
        self._processes = processes
        self._closed = False
        self.timeout_s = timeout_s

    def say(self, state: State) -> None:
        self._header[self._rank * LINE_COUNTERS + Word.STATE] = int(state)

    def close(self) -> None:
        """End a wait in another thread of this rank."""
        self._closed = True

    def wait(self, peer: int, word: int, target: int) -> None:
        """Return once the peer's word has reached the target.

        Raises `PeerLostError` where the peer ended, failed or left before, `PeerSilentError` after `timeout_s`, and
        `AllReduceClosedError` after `close`.
        """
        header, place = self._header, peer * LINE_COUNTERS + word
        for _ in range(SPINS):
            if header[place] >= target:
                return
        for _ in range(YIELDS):
            give_core_away()
            if header[place] >= target:
                return
        self._wait_long(peer, place, target)

    def _wait_long(self, peer: int, place: int, target: int) -> None:
        began = time.monotonic()
        look_at, sleep_s = began + ALIVE_EVERY_S, FIRST_SLEEP_S
        while self._header[place] < target:
            if self._closed:
                raise AllReduceClosedError("the exchange of gradients was closed")
            self._check_states(place, target)
            now = time.monotonic()
            if now >= look_at:
                look_at = now + ALIVE_EVERY_S
                self._check_alive(place, target)
                if now - began > self.timeout_s:
                    pid = self._processes[peer].pid
                    raise PeerSilentError(
                        f"Rank {peer} (process {pid}) has sent no gradients for {now - began:.0f} s.",
                        "Check that rank's log, then stop the run immediately and resume it.",
                    )
            time.sleep(sleep_s)
            sleep_s = min(LONGEST_SLEEP_S, sleep_s * 1.25)

    def _check_states(self, place: int, target: int) -> None:
        for other, process in enumerate(self._processes):
            state = self._header[other * LINE_COUNTERS + Word.STATE]
            # A rank that left after its last word has said all it had to say.
            if other != self._rank and state != State.TRAINING and self._header[place] < target:
                # It may have left because of another, which is the one to name.
                self._check_alive(place, target)
                what = "left" if state == State.LEFT else "failed"
                raise _peer_lost(f"rank {other} (process {process.pid}) {what}.")

    def _check_alive(self, place: int, target: int) -> None:
        dead = [
            (self._header[other * LINE_COUNTERS + Word.STATE] != State.TRAINING, other, process)
            for other, process in enumerate(self._processes)
            if other != self._rank and not is_alive(process)
        ]
        if dead and self._header[place] < target:
            # Before one that left in order, because of it.
            _, other, process = min(dead, key=lambda found: found[0])
            raise _peer_lost(f"rank {other} (process {process.pid}) ended.")


def _peer_lost(what_happened: str) -> PeerLostError:
    cause = f"The gradient all-reduce failed because a peer is gone: {what_happened}"
    return PeerLostError(cause, "Look at the device that failed first; this is only a secondary failure.")
