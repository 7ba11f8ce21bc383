"""States of a run, as `state.json` has them, and phases of one attempt within it."""

from __future__ import annotations

from enum import Enum, StrEnum, auto


class HostState(StrEnum):
    """The states of a run host; a run is in exactly one.

    ``STARTING``: the host plans, spawns the ranks of an attempt and waits for their first step; attempts that cannot
    get that far *fall back* (`core.host.fallback`). ``TRAINING``: a rank has made its first step (independent mode:
    every rank has); merges, evaluation and commits belong to it, by `phase`. ``STOPPING``: ranks commit at their next
    step boundary and end; past the deadline, or on a request to end now, they are ended without.

    ``STOPPED``, ``FINISHED`` (all the work is done) and ``FAILED`` (`error` has the reason) are final, and the host
    ends. "interrupted" is never written: a reader shows it for one of the first three states if the host's process is
    gone.

    Transitions::

        STARTING ─→ TRAINING     a rank's first step line, or a rank that has nothing left to train
        STARTING ─→ STARTING     a retry after a rank was killed; a fallback to a lesser way to train
        STARTING ─→ STOPPED      a stop: there is nothing to commit, so the ranks are ended at once
        STARTING ─→ FAILED       bad input, the machine is not ready, or ranks that cannot start
        TRAINING ─→ STOPPING     the first stop request
        TRAINING ─→ FINISHED     every rank is done and the last checkpoint is whole
        TRAINING ─→ STARTING     a rank died and restarts are left: all ranks are started again; or, on several
                                 machines, one was lost or has come, and another host continues the run
        TRAINING ─→ FAILED       a rank died; the first failure by time is the root cause
        STOPPING ─→ STOPPED      committed and ended, or ended by the deadline or a request to end now (`error` says so)
        STOPPING ─→ FINISHED     the work was done before the stop reached the ranks
        STOPPING ─→ FAILED       a rank died before the deadline
    """

    STARTING = "starting"
    TRAINING = "training"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FINISHED = "finished"
    FAILED = "failed"


class AttemptPhase(Enum):
    """The phases of one attempt, from spawning its ranks to the last one's end. It never returns to an earlier one.

    ``STARTING`` ends with the first steps: of one rank where all train in step, of every rank where they are
    independent. Its `start_timeout_s` is counted again from the last spawn, from each report on preparing the data, and
    from the data being ready. In ``FAILING`` failures of other ranks are awaited for 1.5 s, because the first that is
    noticed is often a secondary one; independent ranks that are left may save one more checkpoint meanwhile. In
    ``FINISHING`` the last checkpoint holds all ranks, which have 30 s to exit. ``ENDED`` has an outcome; remaining
    processes are ended.

    Transitions::

        STARTING  ─→ TRAINING    the first step line, or a rank that has nothing left to train
        STARTING  ─→ FAILING     a rank exited or reported a failure
        STARTING  ─→ ENDED       a stop (nothing to commit yet), `start_timeout_s`, a ledger that refuses the data,
                                 or a rank that could not be spawned
        TRAINING  ─→ FAILING     a rank exited, reported a failure, or closed its connection and stays
        TRAINING  ─→ FINISHING   every rank waits and the newest checkpoint holds each where it stands
        TRAINING  ─→ ENDED       the stop's deadline, or a request to stop immediately
        FAILING   ─→ ENDED       the other failures are in and the survivors have saved; or the stop's deadline
        FINISHING ─→ ENDED       the last process exited, 30 s are over, or the stop's deadline
        any       ─→ ENDED       the run's folder is gone
    """

    STARTING = auto()
    TRAINING = auto()
    FAILING = auto()
    FINISHING = auto()
    ENDED = auto()

    @property
    def is_working(self) -> bool:
        return self in (AttemptPhase.STARTING, AttemptPhase.TRAINING)
