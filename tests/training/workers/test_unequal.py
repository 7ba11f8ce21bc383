"""Two real processes with unequal shares train as one process alone; a measured run finds its shares, keeps them."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="trains for real")

from core.checkpoints.store import CheckpointStore  # noqa: E402
from core.ledger.state_file import read_state_file  # noqa: E402
from core.run_folder.store import RunStore  # noqa: E402
from tests.helpers.hosted_run import ROOT, host, lines, make_run, write_text  # noqa: E402
from tests.helpers.rank_processes import run_rank_processes  # noqa: E402
from tests.training.workers.unequal_rank import MICRO, train  # noqa: E402
from workers.strategies import RankPlace, SingleStrategy  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
RECIPE = ROOT / "tests" / "helpers" / "recipes" / "unequal"


def run_ranks(folder: Path, shares: tuple[int, ...]) -> dict[str, list[dict[str, Any]]]:
    """What each rank says of each mode; a rank that fails shows what it printed."""
    said = run_rank_processes("tests.training.workers.unequal_rank", len(shares), folder, *map(str, shares))
    return {mode: [rank[mode] for rank in said] for mode in said[0]}


def difference(one: list[float], other: list[float]) -> float:
    """The largest difference of two lists of numbers."""
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


def test_five_batches_against_nine_give_the_single_process_gradient(tmp_path: Path) -> None:
    alone = train(SingleStrategy(RankPlace(0, 1, torch.device("cpu"))), None)
    assert alone["micro_batches"][0] == 14
    for mode, ranks in run_ranks(tmp_path, (5 * MICRO, 9 * MICRO)).items():
        first, second = ranks
        assert (first["micro_batches"][0], second["micro_batches"][0]) == (5, 9), mode
        assert first["gradient"] == second["gradient"]
        assert difference(first["gradient"], alone["gradient"]) <= 1e-6
        assert first["weights"] == second["weights"]
        # the epoch's last batch is short, and shared out in the same proportion
        assert len(first["norms"]) == len(alone["norms"]) == 5
        assert first["norms"] == pytest.approx(alone["norms"], rel=1e-4)
        assert difference(first["weights"], alone["weights"]) <= 1e-5


def measured_run(folder: Path, text: Path) -> RunStore:
    """Rank 1 takes sixteen times as long, so that no other program on the machine can hide it."""
    return make_run(
        folder,
        text,
        "ddp",
        2,
        recipe=str(RECIPE),
        balance="measured",
        steps=14,
        batch_size=8,
        checkpoint_every_steps=6,
        options={"slow_rank": 1, "times": 16, "n_embd": 32},
    )


def test_measured_shares_are_told_saved_and_kept_by_a_resumed_run(tmp_path: Path) -> None:
    """With all checkpoints after step 6 gone the run resumes from there: the same steps, bit by bit."""
    store = measured_run(tmp_path / "run", write_text(tmp_path / "text.txt"))
    assert host(store) == 0
    told = lines(store, "balance")
    assert [line["reason"] for line in told] == ["start"]
    shares = told[0]["shares"]
    assert sum(shares) == 16 and shares[0] > shares[1] >= 1
    assert f"{shares[0]} + {shares[1]} of 16" in told[0]["text"]
    found = {checkpoint.step: checkpoint.folder for checkpoint in CheckpointStore(store.checkpoints).list()}
    assert 6 in found and 14 in found
    for step, folder in found.items():
        if step > 6:
            shutil.rmtree(folder)
    assert host(store) == 0
    assert lines(store, "balance") == told, "a resumed run keeps the shares it was saved with"
    steps = {(line["attempt"], line["rank"], line["step"]): line for line in lines(store, "step")}
    for rank in (0, 1):
        assert [steps[2, rank, step]["loss"] for step in range(7, 15)] == [
            steps[1, rank, step]["loss"] for step in range(7, 15)
        ]
        assert (2, rank, 6) not in steps
        line = steps[2, rank, 14]
        assert round(line["samples_per_s"] * line["step_time_s"]) == shares[rank]


def test_devices_that_take_chunks_from_each_other_train_each_chunk_once(tmp_path: Path) -> None:
    """Rank 1 takes six times as long; the run is killed on the way and goes on."""
    store = make_run(
        tmp_path / "run",
        write_text(tmp_path / "text.txt", 18_000),
        "independent",
        2,
        recipe=str(RECIPE),
        work_stealing=True,
        batch_size=4,
        checkpoint_every_steps=20,
        eval_every=None,
        options={"slow_rank": 1, "times": 6, "n_embd": 32},
    )
    assert host(store, "mid_chunk@50") != 0
    assert host(store) == 0
    ledger = read_state_file(store.ledger)
    chunks = [(chunk.epoch, chunk.block_id, chunk.chunk_id) for chunk in ledger.completed]
    samples = ledger.samples
    assert samples is not None and ledger.chunk_size is not None
    blocks, rest = divmod(samples, 320)
    assert len(chunks) == len(set(chunks)) == blocks * 10 + -(-rest // 32)
    assert sum(chunk.samples for chunk in ledger.completed) == ledger.total_samples == samples
    by_rank = Counter(chunk.gpu_id for chunk in ledger.completed)
    assert by_rank[0] > by_rank[1] > 0
    told = Counter((line["block_id"], line["chunk_id"]) for line in lines(store, "chunk_complete"))
    assert set(told) == {chunk[1:] for chunk in chunks}, "every chunk is told by the rank that trained it"
    for rank in (0, 1):
        lr = [line["lr"] for line in lines(store, "step") if line["rank"] == rank]
        assert lr[-1] < 0.5 * max(lr), "the schedule ends about where the rank's work ends"
