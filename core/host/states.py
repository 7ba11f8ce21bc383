"""What a run goes through, as `state.json` says it."""

from __future__ import annotations

from enum import StrEnum


class HostState(StrEnum):
    """The states of a run host; a run is in exactly one.

    ``STARTING``: the host has the folder. It plans, listens, spawns the ranks of an attempt and waits for their first
    step. A synchronised attempt of several ranks that cannot get that far *falls back*: its ranks are killed, the
    state stays STARTING and a new attempt begins in a lesser way (`core.host.lifecycle`), unless ``strict``, or the
    person's input is at fault.

    ``TRAINING``: a rank has made its first step (independent mode: every rank has). Merges, evaluation, commits and
    the last commit belong to it; `phase` says which.

    ``STOPPING``: somebody asked for a stop. Ranks commit at their next step boundary and end; past the deadline, or
    on a request to end now, they are ended without.

    ``STOPPED``: stopped as asked. ``FINISHED``: all the work is done. ``FAILED``: neither; `error` says why. These
    three are final, and the host ends. "interrupted" is no state of a host: it is what a reader sees when the state
    is one of the first three and the host's process is gone.

    Transitions::

        STARTING ─→ TRAINING     a rank's first step line, or a rank that has nothing left to train
        STARTING ─→ STARTING     once more as asked after a rank was killed; fallback to a lesser way to train
        STARTING ─→ STOPPED      a stop: there is nothing to commit, so the ranks are ended at once
        STARTING ─→ FAILED       bad input, the machine is not ready, or ranks that cannot start
        TRAINING ─→ STOPPING     the first stop request
        TRAINING ─→ FINISHED     every rank is done and the last generation is whole
        TRAINING ─→ STARTING     a rank died and restarts are left: all ranks are started anew
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

    @property
    def is_final(self) -> bool:
        """The host ends."""
        return self in (HostState.STOPPED, HostState.FINISHED, HostState.FAILED)
