"""Competition for the processor: other programs on the cores of some processes, and whether these have to wait."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from core.machine.process_reading import UNREADABLE, descendants, program_name

WATCH_S: Final = 1.0
# Share of one core from which on a program counts.
NOTABLE: Final = 0.1
_FULL: Final = 0.9
# A thread that wants to run for a smaller share of the time is not kept from anything.
_IDLE: Final = 0.05
_NS: Final = 1e9


@dataclass(frozen=True, slots=True)
class Program:
    """A process that is not the run's.

    Attributes:
        name, pid: Which; the name as a person calls it.
        cores: How many cores it kept busy.
        allowed: The cores that it may run on.
    """

    name: str
    pid: int
    cores: float
    allowed: frozenset[int]


@dataclass(frozen=True, slots=True)
class Competition:
    """What one process has to share.

    Attributes:
        kept_off: Share of the time in which its main thread could have run and did not, by Linux' own count; on other
            systems 1 where all its cores are busy, else 0.
        cores: How many cores it may run on; None where the system does not say.
        programs: Others that use these cores, the busiest first.
    """

    kept_off: float = 0.0
    cores: int | None = None
    programs: tuple[Program, ...] = ()


def find_competition(pids: Sequence[int], watch_s: float = WATCH_S) -> list[Competition]:
    """Watches some processes and all others for a second; what they have started counts as theirs."""
    ours = {os.getpid(), *pids, *(child.pid for pid in pids for child in descendants(pid))}
    began, before, scheduled = time.monotonic(), _used_s(ours), [_scheduled(pid) for pid in pids]
    psutil.cpu_percent(percpu=True)
    time.sleep(watch_s)
    busy, took_s = psutil.cpu_percent(percpu=True), time.monotonic() - began
    others = [
        Program(program_name(pid) or "a program", pid, (used_s - before[pid]) / took_s, _allowed(pid))
        for pid, used_s in _used_s(ours).items()
        if pid in before and (used_s - before[pid]) / took_s >= NOTABLE
    ]
    others.sort(key=lambda program: -program.cores)
    found = []
    for pid, then in zip(pids, scheduled, strict=True):
        allowed = _allowed(pid)
        programs = tuple(program for program in others if program.allowed & allowed)
        kept_off = _kept_off(pid, then, took_s, [busy[core] for core in allowed if core < len(busy)])
        found.append(Competition(kept_off, len(allowed) or None, programs))
    return found


def _kept_off(pid: int, then: tuple[int, int] | None, watched_s: float, busy: Sequence[float]) -> float:
    now = _scheduled(pid)
    if then is not None and now is not None:
        ran, waited = now[0] - then[0], now[1] - then[1]
        return waited / (ran + waited) if ran + waited > _IDLE * watched_s * _NS else 0.0
    return float(bool(busy) and sum(busy) / len(busy) >= _FULL * 100)


def _used_s(ours: set[int]) -> dict[int, float]:
    """Processor time of every process that is not ours, by pid."""
    found = {}
    for process in psutil.process_iter(["cpu_times"]):
        times = process.info["cpu_times"]
        if process.pid not in ours and process.pid != 0 and times is not None:
            found[process.pid] = float(times.user + times.system)
    return found


def _scheduled(pid: int) -> tuple[int, int] | None:
    """How long its main thread ran, and how long it was ready to and did not, in ns; Linux counts that."""
    try:
        ran, waited, *_ = Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()
        return int(ran), int(waited)
    except (OSError, ValueError):
        return None


def _allowed(pid: int) -> frozenset[int]:
    try:
        return frozenset(psutil.Process(pid).cpu_affinity() or ())
    except (*UNREADABLE, AttributeError):  # macOS has none
        return frozenset()
