"""Whole runs through a real, detached host: start, training, commits, merges, stop, resume."""

from __future__ import annotations

import json
import stat
import subprocess
import sys

import pytest

from core.checkpoints.store import CheckpointStore
from core.client import connect
from core.metrics.columns import is_current
from core.protocol.messages import Appended, RunStatus
from core.run_folder.log_times import read_log_times
from tests.helpers.host_fixture import FINISHED, STOPPED, FakeRun, MakeRun

pytestmark = pytest.mark.windows


def host_by_hand(run: FakeRun) -> subprocess.CompletedProcess[str]:
    """A host in the foreground, as somebody might start one from a terminal."""
    argv = [sys.executable, "-m", "core.host", str(run.run_dir)]
    return subprocess.run(argv, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False)


@pytest.mark.spawned
def test_a_run_from_start_to_finish_leaves_what_the_contract_says(make_run: MakeRun) -> None:
    run = make_run().behave(steps=30, commit_every=10, eval_every=10, step_s=0.1).start()
    run.wait_for_event("launch")
    host_json = run.store.read_host_json()
    assert host_json is not None and len(host_json.token) >= 32
    if sys.platform != "win32":
        assert stat.S_IMODE(run.store.host_json.stat().st_mode) == 0o600
    state = run.end()
    assert (state.state, state.exit_code, state.step, state.error) == (FINISHED, 0, 30, None)
    assert (state.mode, state.world_size, state.devices) == ("ddp", 2, ("cpu:0", "cpu:1"))
    assert not run.store.host_json.exists()
    assert run.steps(0) == run.steps(1) == list(range(1, 31))
    assert [line["event"] for line in run.lines() if line["event"] in ("launch", "rank_ready", "finished")] == [
        "launch", "rank_ready", "rank_ready", "finished",
    ]  # fmt: skip
    committed = [line["step"] for line in run.events("commit")]
    assert (committed[0], committed[-1]) == (10, 30)  # the one at 20 is left out where that at 10 takes long
    environment = json.loads(run.store.environment.read_text(encoding="utf-8"))
    assert environment["devices"][1]["uuid"] == "cpu:1" and environment["packages"]["psutil"]
    assert {line["uuid"] for line in run.events("device")} >= {"cpu:0", "host"}
    assert is_current(run.run_dir)
    assert "finished" in run.log()
    log = run.store.logs / "rank0.log"
    assert list(read_log_times(log).sizes) == sorted({0, log.stat().st_size}), "of lines that a fake rank prints: none"


def test_the_ledger_holds_what_the_newest_checkpoint_holds(make_run: MakeRun) -> None:
    run = make_run(epochs=1).behave(steps=10_000, samples=1_000, batch=40, step_s=0).start()
    assert run.end().state == FINISHED
    newest, damaged = CheckpointStore(run.store.checkpoints).newest_valid()
    assert newest is not None and not damaged
    ledger = run.ledger()
    assert ledger == newest.ledger()
    assert len(ledger["completed_chunks"]) == 10 and ledger["completed_blocks"] == [0]
    assert ledger["checkpoint"] == newest.number
    assert run.end().total_steps == 250  # 1,000 samples by 2 ranks of micro-batch 2: the host's own arithmetic


def test_a_stop_commits_at_the_next_boundary_and_a_resume_ends_in_the_same_weights(make_run: MakeRun) -> None:
    broken = make_run().behave(steps=100_000, step_s=0.004).start()
    broken.wait_for_step(20)
    state = broken.stop().end()
    assert (state.state, state.exit_code) == (STOPPED, 0)
    stopped_at = broken.events("commit")[-1]["step"]
    assert broken.steps(0)[-1] == broken.steps(1)[-1] == stopped_at
    assert [line["now"] for line in broken.events("stop_requested")] == [False]
    wanted = stopped_at + 30
    resumed = broken.behave(steps=wanted).resume(steps=wanted).end()
    assert (resumed.state, resumed.attempt, resumed.step) == (FINISHED, 2, wanted)
    assert broken.events("launch")[-1]["resumed_from"] == {"0": stopped_at, "1": stopped_at}
    assert broken.steps(1, attempt=2) == list(range(stopped_at + 1, wanted + 1))
    straight = make_run().behave(steps=wanted, step_s=0).start()
    assert straight.end().state == FINISHED
    assert broken.weights() == straight.weights()
    assert broken.completed() == straight.completed()


def test_independent_ranks_commit_together_merge_and_export_the_best(make_run: MakeRun) -> None:
    run = make_run(mode="independent").behave(steps=40, samples=300, batch=10, commit_every=10)
    run.behave(0, val_loss=2.5).behave(1, val_loss=1.5, step_s=0.004).start()
    state = run.end()
    assert (state.state, state.exit_code, state.error) == (FINISHED, 0, None)
    newest, _ = CheckpointStore(run.store.checkpoints).newest_valid()
    assert newest is not None
    assert {rank: position.step for rank, position in newest.positions.items()} == {0: 40, 1: 40}
    assert run.weights() == (newest.folder / "weights_rank1.safetensors").read_text(encoding="utf-8")
    assert len({chunk["gpu_id"] for chunk in run.ledger()["completed_chunks"]}) == 2


def test_an_independent_rank_that_is_done_early_commits_again_with_the_others(make_run: MakeRun) -> None:
    run = make_run(mode="independent").behave(0, steps=5).behave(1, steps=60, step_s=0.01, commit_every=20).start()
    assert run.end().state == FINISHED
    newest, _ = CheckpointStore(run.store.checkpoints).newest_valid()
    assert newest is not None
    assert {rank: position.step for rank, position in newest.positions.items()} == {0: 5, 1: 60}


def test_a_client_reads_the_file_as_far_as_it_is_told_and_hears_every_state(make_run: MakeRun) -> None:
    run = make_run().behave(steps=40, step_s=0.01).start()
    connection = connect(run.store)
    told, states = 0, []
    try:
        while not states or states[-1] != FINISHED:
            for message in connection.messages(20.0):
                if isinstance(message, Appended):
                    assert message.size_bytes > told
                    told = message.size_bytes
                    with run.store.metrics.open("rb") as file:
                        assert file.read(told)[-1:] == b"\n"
                elif isinstance(message, RunStatus):
                    states.append(message.state["state"])
    finally:
        connection.close()
    assert told == run.store.metrics.stat().st_size
    assert list(dict.fromkeys(states)) == ["starting", "training", FINISHED]
    run.end()


def test_a_flood_of_lines_from_both_ranks_is_written_whole_and_in_order(make_run: MakeRun) -> None:
    run = make_run().behave(steps=100, step_s=0, flood=200).start()
    assert run.end().state == FINISHED
    notes = run.events("note")
    assert len(notes) == 2 * 100 * 200
    for rank in (0, 1):
        numbers = [(line["step"], line["number"]) for line in notes if line["rank"] == rank]
        assert numbers == [(step, number) for step in range(1, 101) for number in range(200)]


def test_what_a_rank_should_not_send_is_dropped_and_the_run_goes_on(make_run: MakeRun) -> None:
    garbage = ["GET / HTTP/1.1", "\udcff\udcfe", "{", '{"type":"bye"}', '{"event":"step","rank":7}', "[" * 5000]
    nan = '{"ts":1,"event":"odd","rank":0,"attempt":1,"loss":NaN}'  # a `Reporter` writes null
    run = make_run().behave(0, raw=[*garbage, nan]).start()
    assert run.end().state == FINISHED
    assert run.events("odd") == [] and "7 lines were dropped" in run.log()


def test_one_device_alone_needs_nobody_else(make_run: MakeRun) -> None:
    run = make_run(devices=("cpu:1",), mode="auto").start()
    state = run.end()
    assert (state.state, state.mode, state.world_size) == (FINISHED, "single", 1)


def test_a_host_that_decides_otherwise_than_the_check_says_so(make_run: MakeRun) -> None:
    run = make_run().behave(steps=3)
    run.store.resolved.parent.mkdir(parents=True, exist_ok=True)
    run.store.resolved.write_text('{"mode": "independent", "devices": "cpu:0, cpu:1"}', encoding="utf-8")
    (launch,) = run.start().wait_for_event("launch")
    decided = "The run's host decided otherwise than the check before the start: mode ddp instead of independent."
    assert decided in launch["notes"]
    run.end()


def test_a_second_host_is_refused_while_the_first_one_lives(make_run: MakeRun) -> None:
    run = make_run().behave(steps=10_000, step_s=0.01).start()
    run.wait_for_step(2)
    second = host_by_hand(run)
    assert second.returncode == 2 and "is the host of the run" in second.stderr
    run.stop()
    assert run.end().state == STOPPED


def test_a_config_that_cannot_be_read_fails_in_words_and_changes_nothing_else(make_run: MakeRun) -> None:
    run = make_run().start()
    run.end()
    run.store.run_toml.write_text("not toml at all", encoding="utf-8")
    assert host_by_hand(run).returncode == 2
    state = run.end()
    assert state.state == "failed" and state.exit_code == 2
    assert state.error is not None and "run.toml" in state.error["cause"]
