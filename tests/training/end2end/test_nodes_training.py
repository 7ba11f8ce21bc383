"""MiniGPT, sharded on two machines, of which one's process is killed on the way."""

from __future__ import annotations

import shlex
import socket
from collections import Counter
from pathlib import Path

import pytest

from core.ledger.ledger import Ledger
from core.ledger.state_file import read_state_file
from core.run_folder.store import RunStore
from tests.helpers.hosted_run import all_lines, kept, write_text
from tests.helpers.launched import wait
from tests.helpers.net_nodes import ADDRESSES, NO_NODES, NetNodes

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(bool(NO_NODES), reason=NO_NODES),
]
SMALL = shlex.split(
    "--mode fsdp --seq-len 16 --batch-size 4 --global-batch-size 8 --dataset-chunk-size 32 --samples-per-block 640 "
    "--eval-every 1000 --lr 5e-3 --epochs 1 --checkpoint-every-steps 25 --set n_layer=1 --set n_head=2 --set n_embd=16 "
    "--set sample_tokens=0 --val-samples 8"
)
UNEQUAL = [
    "--recipe", str(Path(__file__).parents[2] / "helpers" / "recipes" / "unequal"),
    *shlex.split(
        "--mode ddp --balance measured --seq-len 16 --batch-size 8 --global-batch-size 16 --steps 1000 --epochs 100 "
        "--set slow_rank=1 --set times=16 --set n_embd=32 --set fail_batch=12"
    ),
]  # fmt: skip


def test_each_sample_is_trained_once_whatever_was_lost(tmp_path: Path, nodes: NetNodes) -> None:
    text = write_text(tmp_path / "text.txt", 50_000)
    store = RunStore(tmp_path / "runs" / "run")
    command = ["-m", "core", "train", "--dataset-file", str(text), "--run-dir", str(store.dir), *SMALL]
    jobs = [nodes.torchrun(number, command, "--max-restarts=1") for number in range(2)]
    wait(lambda: _steps(store, 1) > 30, "a checkpoint")
    assert any(address == ADDRESSES[1] for address, _ in nodes.listening(1)), "gloo listens on the interface"
    nodes.kill(1, "python -u -m core train")
    assert [job.end() for job in jobs] == [0, 0], jobs[0].output
    state = store.state()
    assert (state.state, state.world_size) == ("finished", 2)
    launches = [line for line in kept(store) if line["event"] == "launch"]
    assert [(launch["world_size"], launch["mode"]) for launch in launches] == [(2, "fsdp"), (2, "fsdp")]
    ledger = Ledger.from_file(read_state_file(store.ledger))
    assert ledger.progress().finished
    trained = Counter(
        (line["epoch"], line["block_id"], line["chunk_id"]) for line in kept(store) if line["event"] == "chunk_complete"
    )
    assert len(trained) > 50 and set(trained.values()) == {1}
    # Of a last batch that is smaller than the number of ranks one has no sample, and no loss.
    losses = [line["loss"] for line in kept(store) if line["event"] == "step" and "loss" in line]
    assert losses[-1] < losses[0] - 0.3
    assert store.model.is_file()


def test_the_faster_machine_takes_more_of_a_batch_and_an_exception_on_the_other_ends_the_run(
    tmp_path: Path, nodes: NetNodes
) -> None:
    """Two things in one run, since starting it takes the time: shares by speed, and a recipe that raises."""
    text = write_text(tmp_path / "text.txt", 20_000)
    store = RunStore(tmp_path / "runs" / "run")
    command = ["-m", "core", "train", "--dataset-file", str(text), "--run-dir", str(store.dir), *UNEQUAL]
    jobs = [nodes.torchrun(number, command) for number in range(2)]
    assert all(job.end() != 0 for job in jobs), jobs[0].output + jobs[1].output
    launch, *others = [line for line in all_lines(store) if line["event"] == "launch"]
    assert (launch["world_size"], launch["mode"], others) == (2, "ddp", []), "started once, and not again"
    [told] = [line for line in all_lines(store) if line["event"] == "balance"]
    ours, theirs = told["shares"]
    assert ours + theirs == 16 and ours > theirs >= 1
    seen = {line["rank"]: line for line in all_lines(store) if line["event"] == "step"}
    for rank, share in enumerate((ours, theirs)):
        assert round(seen[rank]["samples_per_s"] * seen[rank]["step_time_s"]) == share
    state = store.state()
    assert state.state == "failed" and state.error is not None
    assert state.error["title"].startswith(f"CPU 1 on {socket.gethostname()}")
    assert "this sample cannot be learned" in state.error["cause"]
    for job in jobs:
        for key in ("title", "cause", "next_step"):
            assert state.error[key] in job.output
    assert nodes.processes(0) == nodes.processes(1) == []


def _steps(store: RunStore, attempt: int) -> int:
    """Steps that an attempt has reported."""
    return sum(line["event"] == "step" and line["attempt"] == attempt for line in all_lines(store))
