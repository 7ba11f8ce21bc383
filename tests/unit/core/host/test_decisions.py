"""The host's pure decisions: what to do when ranks wait, whose fault a failure is, how a stop gets harder."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.config import RunConfig
from core.config.batch import resolve_batch
from core.host.commits.gathering import Gathered, Next, next_action
from core.host.failures import RankFailure, describe, last_lines, root_cause
from core.host.stop_ladder import Rung, StopLadder
from core.host.work_plan import independent_on_all, on_one_device, total_steps
from core.launch.resolved import ResolvedRun
from core.ledger.ledger import Ledger
from core.machine.devices import Device
from core.protocol.messages import ChunkDone, MergeReady, Position, RankDone, RankFailed
from tests.helpers.resolved_run import resolved_run

pytestmark = pytest.mark.windows

DONE = {0: RankDone(20, True), 1: RankDone(30, True)}
READY = {0: MergeReady(1, 20), 1: MergeReady(1, 30)}

ACTIONS = [
    # who is done, who waits for a merge, merges at all, committing, holds all, merging, merged at, → what next
    ({0: DONE[0]}, {}, False, False, False, False, None, Next.WAIT),
    (DONE, {}, False, True, False, False, None, Next.WAIT),
    (DONE, {}, False, False, False, False, None, Next.COMMIT),
    (DONE, {}, False, False, True, False, None, Next.FINISH),
    (DONE, {}, True, False, False, False, None, Next.COMMIT),
    (DONE, {}, True, False, True, False, None, Next.MERGE),
    (DONE, {}, True, False, True, True, None, Next.WAIT),
    (DONE, {}, True, False, True, False, {0: 20, 1: 30}, Next.FINISH),
    (DONE, {}, True, False, True, False, {0: 10, 1: 30}, Next.MERGE),
    ({}, READY, True, False, False, False, None, Next.COMMIT),
    ({}, READY, True, False, True, False, None, Next.MERGE),
    ({}, READY, True, False, True, False, {0: 20, 1: 30}, Next.RELEASE),
    ({}, {0: READY[0]}, True, False, True, False, None, Next.WAIT),
    ({1: DONE[1]}, {0: READY[0]}, True, False, True, False, None, Next.MERGE),
    ({1: DONE[1]}, {0: READY[0]}, True, False, True, False, {0: 20, 1: 30}, Next.RELEASE),
]


@pytest.mark.parametrize(("done", "ready", "merges", "committing", "holds", "merging", "merged", "then"), ACTIONS)
def test_what_is_due_when_ranks_wait(
    done: dict[int, RankDone],
    ready: dict[int, MergeReady],
    merges: bool,
    committing: bool,
    holds: bool,
    merging: bool,
    merged: dict[int, int] | None,
    then: Next,
) -> None:
    gathered = Gathered(done, ready, 2, merges)
    found = next_action(gathered, committing=committing, holds_all=holds, merging=merging, merged_steps=merged)
    assert found is then


def reported(cause: str, usage: bool = False) -> RankFailed:
    return RankFailed("Title", cause, "Next.", usage)


def test_the_first_failure_by_time_is_the_root_cause() -> None:
    failures = [
        RankFailure(0, 5.0, returncode=1),
        RankFailure(1, 4.0, returncode=-9),
        RankFailure(2, 6.0, returncode=1),
    ]
    assert root_cause(failures).rank == 1


@pytest.mark.parametrize(
    "words",
    [
        "[gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:39017",
        "Connection reset by peer",
        "[WinError 10054] An existing connection was forcibly closed by the remote host",
        "NCCL communicator was aborted on rank 1",
    ],
)
def test_a_broken_collective_is_an_echo_even_if_it_was_heard_first(words: str) -> None:
    failures = [RankFailure(0, 4.0, report=reported(words)), RankFailure(1, 4.1, returncode=-9)]
    assert root_cause(failures).rank == 1
    assert root_cause(failures[:1]).rank == 0  # alone it is all that is known


def test_a_rank_that_reports_a_lost_peer_is_not_the_root_cause_whatever_its_text_says() -> None:
    lost = RankFailed("Another rank ended", "Rank 1 exited.", "Next.", peer_lost=True)
    failures = [RankFailure(0, 4.0, report=lost), RankFailure(1, 4.1, returncode=1)]
    assert root_cause(failures).rank == 1
    told_in_text = RankFailure(0, 4.0, report=reported("The peer is gone."))
    assert root_cause([told_in_text, failures[1]]).rank == 0


def test_a_rank_that_crashed_is_no_echo_whatever_its_log_says() -> None:
    failures = [
        RankFailure(0, 4.0, returncode=-11, tail=("Connection closed by peer",)),
        RankFailure(1, 4.5, returncode=-9),
    ]
    assert root_cause(failures).rank == 0


def test_the_words_name_root_echo_log_and_what_resuming_gives() -> None:
    log = Path("run") / "logs" / "rank1.log"
    root = RankFailure(1, 4.0, step=12, returncode=-9, log=log, tail=("first", "CUDA error: out of memory"))
    words = describe(root, [root, RankFailure(0, 4.1, report=reported("x"))], "Resume the run.")
    assert words["cause"] == (
        "Rank 1, after step 12: killed (often by the system's out-of-memory killer) (SIGKILL). "
        "Its last output: “CUDA error: out of memory”. Rank 0 ended because of it."
    )
    assert words["next_step"] == "Look at logs/rank1.log. Resume the run."


def test_a_ranks_own_words_are_passed_on() -> None:
    root = RankFailure(0, 1.0, report=reported("The dataset is too small."))
    words = describe(root, [root], "")
    assert words == {"title": "Rank 0: Title", "cause": "The dataset is too small.", "next_step": "Next."}


def test_the_last_lines_of_a_log_leave_out_what_says_nothing(tmp_path: Path) -> None:
    log = tmp_path / "rank0.log"
    assert last_lines(log) == ()
    log.write_bytes(
        b"x\n" * 9000 + "Fehler: Käse \xff".encode("latin-1") + b"\n\nrankdeck: the run's host is gone (x)\n"
    )
    assert last_lines(log)[-1] == "Fehler: K\ufffdse \ufffd" and len(last_lines(log)) == 8


def test_a_stop_climbs_and_never_comes_down() -> None:
    ladder = StopLadder(20.0)
    assert ladder.rung(100.0) is Rung.NONE and not ladder.is_asked
    ladder.ask(100.0)
    ladder.ask(110.0)
    assert (ladder.rung(119.9), ladder.rung(120.0)) == (Rung.ASKED, Rung.END)
    ladder.hurry(115.0)
    assert ladder.rung(115.0) is Rung.END and ladder.is_hurried
    ladder.hurry(200.0)
    assert ladder.rung(116.0) is Rung.END


def run(config: RunConfig, groups: int, world_size: int) -> ResolvedRun:
    mode = "independent" if groups > 1 else "ddp" if world_size > 1 else "single"
    return resolved_run(config, mode, world_size)


@pytest.mark.parametrize(
    ("config", "groups", "world", "samples", "steps"),
    [
        (RunConfig(steps=50), 1, 2, 1_000, 50),
        (RunConfig(epochs=1, global_batch_size=30), 1, 2, 1_000, 34),
        (RunConfig(epochs=3, global_batch_size=30), 1, 2, 1_000, 102),
        (RunConfig(epochs=3, steps=40, global_batch_size=30), 1, 2, 1_000, 40),
        (RunConfig(global_batch_size=30), 1, 1, 1_000, 34),  # neither steps nor epochs: one pass
        (RunConfig(epochs=1, global_batch_size=10, dataset_chunk_size=100), 2, 2, 250, 15),  # 100 + 50 | 100
        (RunConfig(epochs=2, global_batch_size=10, dataset_chunk_size=100), 2, 2, 250, 25),  # they change places
    ],
)
def test_how_much_work_a_run_is(config: RunConfig, groups: int, world: int, samples: int, steps: int) -> None:
    assert total_steps(run(config, groups, world), ledger(config, groups, world, samples), {}) == steps


def ledger(config: RunConfig, groups: int, world: int, samples: int) -> Ledger:
    cut = (samples, config.samples_per_block, config.dataset_chunk_size)
    return Ledger.new({}, *cut, config.seed, world, groups, config.epoch_limit)


def trained(made: Ledger, chunks: int, batch: int) -> dict[int, int]:
    """Commits so many chunks of every replica group and half of one more; returns each group's steps for it."""
    positions = {}
    for group in range(made.groups):
        grants = [made.claim(group, sequence) for sequence in range(chunks + 1)]
        samples = sum(grant.count for grant in grants[:-1]) + 50
        done = [ChunkDone(g.epoch, g.block_id, g.chunk_id, 1, g.count) for g in grants[:-1]]
        last = grants[-1]
        positions[group] = Position(samples // batch, samples, done, [[last.epoch, last.block_id, last.chunk_id, 50]])
    made.commit(positions, 1)
    return {group: position.step for group, position in positions.items()}


@pytest.mark.parametrize(("groups", "epochs", "chunks"), [(1, 1, 3), (1, 3, 12), (2, 2, 3), (2, 5, 7)])
def test_a_resumed_run_has_as_much_work_as_one_that_was_never_stopped(groups: int, epochs: int, chunks: int) -> None:
    config = RunConfig(epochs=epochs, global_batch_size=10, dataset_chunk_size=100)
    fresh, begun = ledger(config, groups, 2, 1_000), ledger(config, groups, 2, 1_000)
    done = trained(begun, chunks, 10)
    whole = total_steps(run(config, groups, 2), fresh, {})
    assert total_steps(run(config, groups, 2), begun, done) == whole


def test_imported_chunks_are_no_work_of_this_run() -> None:
    config = RunConfig(epochs=1, global_batch_size=10, dataset_chunk_size=100)
    begun = ledger(config, 1, 2, 1_000)
    trained(begun, 3, 10)
    assert total_steps(run(config, 1, 2), begun, {}) == 65


def test_a_fallback_keeps_the_global_batch() -> None:
    config = RunConfig(mode="ddp", devices=("cpu:2",), batch_size=4, grad_accum_steps=3, global_batch_size=24)
    alone = on_one_device(config, Device("cpu:1", "cpu", 1, "CPU"), resolve_batch(config, 2, 8))
    batch = resolve_batch(alone, 1, 8)
    assert (batch.micro, batch.accumulation, batch.global_) == (4, 6, 24)
    assert (alone.mode, alone.devices) == ("single", ("cpu:0",))  # a lone CPU device, whichever it was


@pytest.mark.parametrize(("asked", "kept"), [("best", "best"), ("average", "best"), ("none", "none")])
def test_a_fallback_to_independent_devices_keeps_the_best_and_each_devices_share(asked: str, kept: str) -> None:
    config = RunConfig(mode="ddp", devices=("cpu:2",), global_batch_size=24, merge_policy=asked, sync_every=5)
    apart = independent_on_all(config, resolve_batch(config, 2, 4))
    batch = resolve_batch(apart, 1, 8)
    assert (batch.micro, batch.accumulation, batch.global_) == (4, 3, 12)
    assert (apart.mode, apart.merge_policy, apart.sync_every) == ("independent", kept, None)
