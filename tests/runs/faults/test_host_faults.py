"""What can go wrong with ranks, host and disk, one readable line each, through a real host with fake ranks."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from core.checkpoints.store import CheckpointStore
from core.config.config_file import read_config
from core.resume.planner import plan_resume
from core.run_folder.state import RunState
from tests.helpers.host_fixture import FAILED, FAKE_RECIPE, FINISHED, SHORT_START_S, STOPPED, FakeRun, MakeRun

windows = pytest.mark.windows  # those where the platform matters: each takes some ten seconds under Wine


def cause(state: RunState) -> str:
    """Title and cause of a run's error."""
    assert state.error is not None, state
    assert state.error["next_step"]
    return f"{state.error['title']}: {state.error['cause']}"


def recipe_in_step(folder: Path) -> str:
    """The fake recipe, for one device and DDP only."""
    copy = folder / "in step" / "fake"  # a recipe is called as its folder is
    shutil.copytree(FAKE_RECIPE, copy)
    manifest = copy / "recipe.toml"
    text = manifest.read_text(encoding="utf-8").replace(', "independent"]', "]")
    manifest.write_text(text, encoding="utf-8", newline="\n")
    return str(copy)


def on_fallback(run: FakeRun, *modes: str) -> str:
    """The reason of the last fallback of a run that then finished in the last of these modes."""
    state = run.end()
    world = 1 if modes[-1] == "single" else 2
    assert (state.state, state.exit_code, state.mode, state.world_size) == (FINISHED, 0, modes[-1], world), state
    events = run.events("fallback")
    assert [(event["was"], event["mode"]) for event in events] == list(pairwise(modes))
    retries = len(run.events("retry"))
    assert retries <= (sys.platform == "win32"), "a process that was killed has exit code 1 there, as others have"
    assert [line["mode"] for line in run.events("launch")] == [modes[0]] * retries + list(modes)
    assert state.fallback is not None and events[-1]["reason"] in state.fallback
    assert state.fallback in run.events("launch")[-1]["notes"]
    return str(events[-1]["reason"])


# a rank that dies


@pytest.mark.spawned
@windows
def test_a_rank_killed_in_training_is_named_and_what_was_committed_stays(make_run: MakeRun) -> None:
    run = make_run().behave(steps=500, commit_every=10, step_s=0.01).fail_at(rank=1, step=35).start()
    state = run.end()
    assert state.state == FAILED and state.exit_code == 1
    assert cause(state).startswith("The process on CPU 1 exited unexpectedly: The process on CPU 1, after step 3")
    assert "The process on CPU 0 ended because of it." in cause(state)
    (failed,) = run.events("failed")
    assert (failed["title"], failed["ranks"]) == ("The process on CPU 1 exited unexpectedly", [1])
    assert CheckpointStore(run.store.checkpoints).newest_valid()[0] is not None
    assert not run.ranks()


def test_a_rank_that_says_why_it_fails_is_quoted(make_run: MakeRun) -> None:
    state = make_run().fail_at(rank=0, step=3, how="raise").start().end()
    assert cause(state).startswith("CPU 0: Out of memory: A fake GPU is out of memory at 3.")


@windows
def test_an_exit_code_without_words_is_told_with_the_logs_last_line(make_run: MakeRun) -> None:
    state = make_run(devices=("cpu:1",), mode="single").fail_at(rank=0, step=3, how="exit:7").start().end()
    assert "exit code 7" in cause(state) and "fake rank 0 fails at 3" in cause(state)


def test_a_rank_that_leaves_without_a_word_has_failed(make_run: MakeRun) -> None:
    state = make_run(devices=("cpu:1",), mode="single").fail_at(rank=0, step=3, how="quiet").start().end()
    assert "exited without reporting an error" in cause(state)


def test_an_independent_rank_that_dies_fails_the_run_and_the_others_commit_first(make_run: MakeRun) -> None:
    run = make_run(mode="independent").behave(steps=80, commit_every=10, step_s=0.01)
    state = run.fail_at(rank=1, step=35, how="exit:3", fail_attempts=[1]).start().end()
    assert state.state == FAILED and state.fallback is None
    assert cause(state).startswith("The process on CPU 1 exited unexpectedly")
    newest, damaged = CheckpointStore(run.store.checkpoints).newest_valid()
    assert newest is not None and not damaged
    assert newest.positions[0].step == run.steps(0)[-1]  # all that rank 0 has learned
    assert newest.positions[1].step < 35
    assert run.ledger() == newest.ledger()
    assert run.resume().end().state == FINISHED
    assert (run.steps(0)[-1], run.steps(1)[-1]) == (80, 80)
    straight = make_run(mode="independent").behave(steps=80, step_s=0).start()
    assert straight.end().state == FINISHED
    assert run.weights() == straight.weights()
    assert run.completed() == straight.completed()


def test_an_independent_rank_that_does_not_commit_in_time_is_not_waited_for(make_run: MakeRun) -> None:
    run = make_run(mode="independent", stop_timeout_s=1.0).behave(steps=5_000, commit_every=10, step_s=0.01)
    run.behave(0, hang_at="stop").fail_at(rank=1, step=35, how="exit:3").start()
    assert cause(run.end()).startswith("The process on CPU 1 exited unexpectedly")


@windows
def test_a_rank_that_dies_while_staging_leaves_no_leftover(make_run: MakeRun) -> None:
    run = make_run().behave(steps=500, commit_every=5).fail_at(rank=1, step="staging").start()
    assert run.end().state == FAILED
    assert run.checkpoints() == [] and list(run.store.checkpoints.glob("*")) == []
    assert run.ledger()["completed_chunks"] == []


@pytest.mark.skipif(os.name == "nt", reason="there a Job Object ends ranks at once, without SIGTERM before")
def test_a_rank_that_commits_while_it_is_being_ended_leaves_no_leftover(make_run: MakeRun) -> None:
    run = make_run(mode="independent").behave(steps=100_000, commit_every=1).behave(0, ignore_sigterm=True)
    assert run.fail_at(rank=1, step="staging").start().end().state == FAILED
    assert run.checkpoints() == [] and list(run.store.checkpoints.glob("*")) == []


def test_a_rank_that_dies_after_its_last_commit_costs_nothing_but_a_resume(make_run: MakeRun) -> None:
    run = make_run().behave(steps=20).fail_at(rank=1, step="finish", fail_attempts=[1]).start()
    assert run.end().state == FAILED
    assert run.resume().end().state == FINISHED
    assert run.steps(0, attempt=2) == []


# ranks that do not get going


@windows
def test_a_rank_that_dies_before_its_first_step_leads_to_independent_devices(make_run: MakeRun) -> None:
    run = make_run().fail_at(rank=1, step="ready", how="exit:3", fail_attempts=[1]).start()
    assert "The process on CPU 1, before its first step" in on_fallback(run, "ddp", "independent")
    state = run.end()
    assert state.fallback is not None and state.fallback.startswith("DDP on 2 devices could not start, so each device")
    assert "never an average" in state.fallback and state.devices == ("cpu:0", "cpu:1")
    assert run.events("fallback")[0]["merge_policy"] == "best"
    assert run.steps(0) == run.steps(1) == list(range(1, 21))


def test_one_device_is_left_where_independent_devices_cannot_start_either(make_run: MakeRun) -> None:
    run = make_run(global_batch_size=8, batch_size=2).fail_at(1, "start", "exit:7").start()
    assert "exit code 7" in on_fallback(run, "ddp", "independent", "single")
    assert run.end().devices == ("cpu:0",)
    tokens = [line["tokens_per_step"] for line in run.events("launch")]
    assert tokens[0] == tokens[1] == tokens[2]  # each device its share of the batch; the last one all of it


def test_a_recipe_that_cannot_be_trained_independently_falls_back_to_one_device(
    make_run: MakeRun, tmp_path: Path
) -> None:
    run = make_run(recipe=recipe_in_step(tmp_path)).fail_at(1, "ready", "exit:3", fail_attempts=[1]).start()
    assert "exit code 3" in on_fallback(run, "ddp", "single")
    assert run.steps(0) == list(range(1, 21))


def test_ranks_that_make_no_first_step_in_time_lead_to_one_device(make_run: MakeRun) -> None:
    run = make_run(start_timeout_s=SHORT_START_S).hang_at(rank=1, step="ready").start()
    assert f"made no first step within {SHORT_START_S:.0f} s" in on_fallback(run, "ddp", "independent", "single")


def test_an_average_that_was_asked_for_is_not_made_of_a_fallback(make_run: MakeRun) -> None:
    run = make_run(merge_policy="average").fail_at(1, "ready", "exit:3", fail_attempts=[1]).start()
    on_fallback(run, "ddp", "independent")
    assert read_config(run.run_dir / "attempt.toml")["merge_policy"] == "best"
    run.behave(steps=30)
    plan = plan_resume(str(run.run_dir), run.run_dir.parent, {"steps": 30})
    assert "copy" in plan.copies and "average" not in plan.copies
    assert run.resume(steps=30).end().state == FINISHED
    (weights,) = [note for note in run.events("launch")[-1]["notes"] if note.startswith("Weights: ")]
    assert run.events("launch")[-1]["mode"] == "ddp" and plan.copies in weights


def test_independent_devices_asked_for_do_not_fall_back(make_run: MakeRun) -> None:
    state = make_run(mode="independent").fail_at(1, "ready", "exit:3").start().end()
    assert (state.state, state.fallback) == (FAILED, None)


@windows
@pytest.mark.parametrize("again", [False, True])
def test_a_run_that_fell_back_resumes_and_trains_each_chunk_once(make_run: MakeRun, again: bool) -> None:
    """20 chunks of 100 samples; the resumed run is in step again, or falls back again."""
    run = make_run(epochs=1).behave(steps=100_000, samples=2_000, batch=4, step_s=0.005, commit_every=20)
    run.fail_at(1, "ready", "exit:3", fail_attempts=[1, 3] if again else [1]).start()
    run.wait_for_event("commit", 2)
    assert run.stop().end().state == STOPPED
    before = run.completed()
    assert before and len(before) < 20
    run.behave(step_s=0.0).resume()
    state = run.end()
    assert (state.state, state.mode) == (FINISHED, "independent" if again else "ddp"), state
    chunks = [(chunk["epoch"], chunk["block_id"], chunk["chunk_id"]) for chunk in run.ledger()["completed_chunks"]]
    assert len(chunks) == len(set(chunks)) == 20
    assert before <= run.completed()


@windows
def test_a_rank_killed_before_its_first_step_is_tried_once_more_as_asked(make_run: MakeRun) -> None:
    run = make_run().fail_at(rank=1, step="ready", how="kill", fail_attempts=[1]).start()
    state = run.end()
    assert (state.state, state.exit_code, state.mode, state.world_size) == (FINISHED, 0, "ddp", 2), state
    assert state.fallback is None and not run.events("fallback")
    (retry,) = run.events("retry")
    assert (retry["mode"], retry["devices"], retry["ranks"]) == ("ddp", ["cpu:0", "cpu:1"], [1])
    assert retry["reason"].startswith("The process on CPU 1, before its first step")
    assert [line["mode"] for line in run.events("launch")] == ["ddp", "ddp"]
    assert run.steps(1) == list(range(1, 21))


def test_a_rank_killed_twice_before_its_first_step_falls_back(make_run: MakeRun) -> None:
    run = make_run().fail_at(rank=1, step="ready", how="kill", fail_attempts=[1, 2]).start()
    state = run.end()
    assert (state.state, state.mode, state.world_size) == (FINISHED, "independent", 2)
    assert len(run.events("retry")) == 1 and len(run.events("fallback")) == 1
    assert [line["mode"] for line in run.events("launch")] == ["ddp", "ddp", "independent"]


def test_strict_means_no_fallback(make_run: MakeRun) -> None:
    state = make_run(strict=True).fail_at(rank=1, step="ready", how="exit:3").start().end()
    assert (state.state, state.exit_code, state.fallback) == (FAILED, 1, None)


def test_the_persons_own_mistake_is_no_reason_to_fall_back(make_run: MakeRun) -> None:
    state = make_run().fail_at(rank=0, step="data", how="usage").start().end()
    assert (state.state, state.exit_code, state.fallback) == (FAILED, 2, None)
    assert cause(state) == "CPU 0: The dataset is too small: It holds not one training sample."


def test_a_dataset_that_has_changed_is_refused_with_both_values(make_run: MakeRun) -> None:
    run = make_run().start()
    run.end()
    run.behave(steps=40, samples=90_000)
    state = run.resume(steps=40).end()
    assert (state.state, state.exit_code) == (FAILED, 2)
    assert "100000" in cause(state) and "90000" in cause(state)


# stops


@windows
def test_a_stop_while_starting_ends_at_once(make_run: MakeRun) -> None:
    run = make_run().hang_at(rank=1, step="ready").start()
    run.wait_for_event("rank_ready")
    began = time.monotonic()
    state = run.stop().end()
    assert (state.state, state.exit_code) == (STOPPED, 0)
    assert time.monotonic() - began < 15.0  # the limits would have allowed 20 and 30


@windows
def test_a_rank_that_ignores_a_stop_is_ended_at_the_limit(make_run: MakeRun) -> None:
    run = make_run(stop_timeout_s=1.0).behave(steps=100_000, commit_every=300, step_s=0.01, hang_at="stop").start()
    run.wait_for_event("commit")
    run.wait_for_step(303)  # between two commits, so that there is something to lose
    state = run.stop().end()
    assert (state.state, state.exit_code) == (STOPPED, 1)
    assert "at the stop limit" in cause(state)


@pytest.mark.spawned
@pytest.mark.parametrize("twice", [True, False])
def test_a_stop_now_ends_without_a_commit(make_run: MakeRun, twice: bool) -> None:
    run = make_run().behave(steps=100_000, step_s=0.01, hang_at="stop", ignore_sigterm=True).start()
    run.wait_for_step(3)
    if twice:
        run.stop()
    state = run.stop(now=True).end()
    assert (state.state, state.exit_code) == (STOPPED, 130)
    assert "immediately, as requested" in cause(state)
    assert not run.ranks()


def test_a_stop_in_a_commit_waits_for_it(make_run: MakeRun) -> None:
    run = make_run().behave(steps=100_000, commit_every=5, commit_s=0.5, step_s=0.01).start()
    run.wait_for_step(7)
    state = run.stop().end()
    assert (state.state, state.exit_code, state.error) == (STOPPED, 0, None)
    assert run.events("commit")[-1]["step"] == run.steps()[-1]


def test_a_merge_that_hangs_does_not_outlast_the_stop_limit(make_run: MakeRun) -> None:
    run = make_run(mode="independent", stop_timeout_s=1.0).behave(steps=5).hang_at(rank=0, step="merge").start()
    run.wait(lambda state: state.phase == "merging")
    state = run.stop().end()
    assert (state.state, state.exit_code) == (STOPPED, 0)  # everything is committed, only the merge is missing


# the disk


def test_a_commit_that_fails_is_told_and_tried_again(make_run: MakeRun) -> None:
    run = make_run().behave(steps=60, commit_every=10, step_s=0.01).behave(0, failing_commits=2).start()
    assert run.end().state == FINISHED
    (alert,) = run.events("alert")
    assert (alert["title"], alert["kind"]) == ("A checkpoint could not be saved", "commit_failed")
    assert "The disk is full" in alert["cause"]
    assert run.checkpoints()


def test_a_last_commit_that_fails_is_tried_again_before_the_end(make_run: MakeRun) -> None:
    run = make_run().behave(steps=10).behave(1, failing_commits=1).start()
    assert run.end().state == FINISHED
    assert run.events("commit")[-1]["step"] == 10


def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(make_run: MakeRun) -> None:
    run = make_run().behave(steps=30, commit_every=10, step_s=0.01).start()
    assert run.end().state == FINISHED
    *_, before, newest = run.checkpoints()
    (run.store.checkpoints / str(newest) / "rank1.json").write_text("{}", encoding="utf-8")
    run.behave(steps=40)
    assert run.resume(steps=40).end().state == FINISHED
    (alert,) = run.events("alert")
    assert alert["title"] == f"Checkpoint {newest} is damaged"
    assert run.events("launch")[-1]["checkpoint"] == before


# the host


@pytest.mark.spawned
def test_no_rank_outlives_its_host(make_run: MakeRun) -> None:
    run = make_run().behave(steps=100_000, step_s=0.01, ignore_eof=True, grandchild=True).start()
    run.wait_for_step(3)
    ranks = run.ranks()
    assert len(ranks) >= 2
    run.kill_host()
    gone, alive = psutil.wait_procs(ranks, timeout=5.0)
    assert not alive and len(gone) == len(ranks)
    assert run.store.state().state == "interrupted"


@pytest.mark.spawned
@windows
@pytest.mark.parametrize("mode", ["ddp", "independent"])
def test_a_killed_host_resumes_to_the_same_weights(make_run: MakeRun, mode: str) -> None:
    broken = make_run(mode=mode).behave(steps=100_000, commit_every=15, step_s=0.004).start()
    broken.wait_for_event("commit", 2)
    broken.kill_host()
    wanted = max(broken.steps()) + 30
    assert broken.behave(steps=wanted).resume(steps=wanted).end().state == FINISHED
    straight = make_run(mode=mode).behave(steps=wanted, step_s=0).start()
    assert straight.end().state == FINISHED
    assert broken.weights() == straight.weights()
    assert broken.completed() == straight.completed()


def test_a_host_killed_before_any_commit_starts_anew(make_run: MakeRun) -> None:
    run = make_run().behave(steps=100_000, step_s=0.01).start()
    run.wait_for_step(5)
    run.kill_host()
    run.behave(steps=60)
    assert run.resume().end().state == FINISHED
    assert run.events("launch")[-1]["resumed_from"] == {"0": 0, "1": 0}
    assert run.steps(0, attempt=2) == list(range(1, 61))


@pytest.mark.spawned
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM that a process could catch")
def test_a_host_that_is_told_to_end_commits_first(make_run: MakeRun) -> None:
    run = make_run().behave(steps=100_000, step_s=0.01).start()
    run.wait_for_step(3)
    os.kill(run.host.pid, signal.SIGTERM)
    state = run.end()
    assert (state.state, state.exit_code) == (STOPPED, 0)
    assert run.events("stop_requested")[0]["by"] == "SIGTERM"
