"""What a state of a run and a phase of an attempt mean to those that wait for them."""

from __future__ import annotations

from core.host.states import AttemptPhase, HostState
from core.run_folder.state import ENDED_STATES, INTERRUPTED, LIVE_STATES


def test_a_host_is_in_the_states_that_a_reader_takes_for_live_or_ended() -> None:
    assert {state.value for state in HostState} == {*LIVE_STATES, *ENDED_STATES}
    assert INTERRUPTED not in set(HostState), "only a reader says so"


def test_ranks_work_until_one_fails_or_all_are_done() -> None:
    assert [phase for phase in AttemptPhase if phase.is_working] == [AttemptPhase.STARTING, AttemptPhase.TRAINING]
