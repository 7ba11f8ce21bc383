"""Ranks that are started anew after one of them failed: any recipe, from its last commit, so often and no more."""

from __future__ import annotations

import pytest

from tests.helpers.host_fixture import FAILED, FINISHED, MakeRun

pytestmark = pytest.mark.windows


def test_a_restart_goes_on_from_the_newest_commit_and_ends_in_the_same_weights(make_run: MakeRun) -> None:
    run = make_run(max_restarts=1, strict=True).behave(steps=60, commit_every=10, commit_s=0.0, step_s=0.02)
    run.fail_at(1, 35, fail_attempts=[1]).start()
    state = run.end()
    assert (state.state, state.attempt, state.error) == (FINISHED, 2, None)
    resumed_from = run.events("launch")[1]["resumed_from"]["0"]
    assert 10 <= resumed_from < 36 and run.steps(1, attempt=2) == list(range(resumed_from + 1, 61))
    straight = make_run().behave(steps=60, step_s=0).start()
    assert straight.end().state == FINISHED
    assert run.weights() == straight.weights() and run.completed() == straight.completed()


def test_when_no_restart_is_left_the_run_has_failed(make_run: MakeRun) -> None:
    run = make_run(max_restarts=1, strict=True).behave(steps=60, step_s=0.01).fail_at(1, 5).start()
    state = run.end()
    assert (state.state, state.attempt) == (FAILED, 2)
    assert [(line["number"], line["of"]) for line in run.events("restart")] == [(1, 1)]
