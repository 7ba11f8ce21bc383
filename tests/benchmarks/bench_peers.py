"""Tokens a second through Rankdeck beside a well-tuned loop by hand and the peers.

    python -m tests.benchmarks.run_all peers

All contenders of a comparison are started, and then take turns (`taking_turns`). One that is not installed is named and
left out: `pip install accelerate lightning-fabric transformers`. `RANKDECK_BENCH_TURNS` says how many slices each gets.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest

from core.machine.platform import physical_cores, this_platform
from core.processes.program_environment import program_environment
from core.run_folder.store import RunStore
from tests.benchmarks.loops.common import LEARNING_RATE, Job
from tests.benchmarks.taking_turns import Contender, Ends, Timed, median_ratio, rate, ratio, take_turns
from tests.helpers.forking import ROOT
from tests.helpers.hosted_run import lines, make_run, write_text

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(1800)]
TURNS = int(os.environ.get("RANKDECK_BENCH_TURNS", "20"))
STEPS = 20_000  # more than anybody gets to
BATCH, LENGTH = 8, 128
PEERS = {"accelerate_loop": "accelerate", "fabric_loop": "lightning_fabric", "trainer_loop": "transformers"}
NAMES = {"accelerate_loop": "Accelerate", "fabric_loop": "Fabric", "trainer_loop": "HF Trainer"}
HAND, OURS = "by hand", "Rankdeck"
_SECONDS = re.compile(r"\d+\.\d+")


def loop(name: str, job: Job, folder: Path) -> Contender:
    """One of the loops, its ranks started as bare processes; every step is a line of what a rank prints.

    Args:
        name: Its module.
        job: What it does.
        folder: Made for it.
    """
    folder.mkdir()
    job = dataclasses.replace(job, rendezvous=(folder / "rendezvous").as_uri())
    files = [folder / f"{rank}.txt" for rank in range(job.world)]
    processes = []
    for rank, file in enumerate(files):
        argument = json.dumps(dataclasses.asdict(dataclasses.replace(job, rank=rank)))
        command = [sys.executable, "-m", f"tests.benchmarks.loops.{name}", argument]
        with file.open("wb") as output, file.with_suffix(".log").open("wb") as log:
            processes.append(
                psutil.Popen(command, env=environment(job, rank), cwd=ROOT, stdout=output, stderr=log),
            )
    ends = partial(printed, files)
    return Contender(NAMES.get(name, HAND), processes, ends, job.world, job.synchronised)


def environment(job: Job, rank: int) -> dict[str, str]:
    shared = {
        "OMP_NUM_THREADS": str(max(1, physical_cores() // job.world)),
        "GLOO_SOCKET_IFNAME": "lo",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
    }
    if job.world > 1:
        shared |= {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(29_000 + hash(job.rendezvous) % 20_000),
            "WORLD_SIZE": str(job.world),
            "LOCAL_WORLD_SIZE": str(job.world),
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "TORCHELASTIC_RUN_ID": "bench",
            "GROUP_RANK": "0",
        }
    return program_environment(os.environ, shared)


def printed(files: list[Path]) -> Ends:
    """When steps ended, as loops print it; a torn last line is left out, and what libraries log between them."""
    whole = [file.read_text(encoding="utf-8").rpartition("\n")[0].splitlines() for file in files]
    return {rank: [float(line) for line in said if _SECONDS.fullmatch(line)] for rank, said in enumerate(whole)}


def rankdeck(mode: str, job: Job, folder: Path) -> Contender:
    layers, heads, width = job.shape
    shape = {"n_layer": layers, "n_head": heads, "n_embd": width}
    store = make_run(
        folder, job.text, mode, job.world, steps=STEPS, batch_size=job.batch, seq_len=job.length, lr=LEARNING_RATE,
        eval_every=None, options={**shape, "sample_tokens": 0}, dataset_chunk_size=50 * job.batch,
        samples_per_block=500 * job.batch, devices=(job.device,) if job.on_gpu else (f"cpu:{job.world}",),
    )  # fmt: skip
    return hosted(store, OURS, job.world, in_step=mode == "ddp")


def hosted(store: RunStore, name: str, world: int, *, in_step: bool) -> Contender:
    """A run with its real host and ranks; when steps ended is when they were reported."""
    process = psutil.Popen(
        [sys.executable, "-m", "core.host", str(store.dir)],
        cwd=ROOT,
        env=program_environment(os.environ),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def reported() -> Ends:
        by_rank: Ends = {}
        for line in lines(store, "step"):
            by_rank.setdefault(line["rank"], []).append(line["ts"])
        return by_rank

    return Contender(name, [process], reported, world, in_step)


def shown(of: list[Timed], to: list[Timed]) -> str:
    pooled, low, high = ratio(of, to)
    usual = median_ratio(of, to)
    return f"{pooled:.3f} ({low:.3f} to {high:.3f} nine times in ten, {len(of)} turns; median of turns {usual:.3f})"


@pytest.mark.parametrize(("mode", "world"), [("single", 1), ("ddp", 2), ("independent", 2)])
def test_beside_the_peers(mode: str, world: int, tmp_path: Path) -> None:
    text = write_text(tmp_path / "text.txt", 2_000_000)
    job = Job(0, world, str(text), "", STEPS, BATCH, LENGTH, mode != "independent")
    compare(mode, job, [] if mode == "independent" else list(PEERS), tmp_path)  # they have no such mode


@pytest.mark.parametrize("shape", [(4, 4, 256), (12, 12, 768)], ids=["small", "gpt2"])
def test_beside_the_peers_on_a_gpu(shape: tuple[int, int, int], tmp_path: Path) -> None:
    """A model so small that its kernels are launched for longer than they run, and one of GPT-2's size."""
    if this_platform().cuda_build is None:
        pytest.skip("PyTorch here has no CUDA")
    text = write_text(tmp_path / "text.txt", 8_000_000)
    batch, length = (BATCH, LENGTH) if shape[0] == 4 else (16, 512)
    compare(
        "single", Job(0, 1, str(text), "", STEPS, batch, length, shape=shape, device="cuda:0"), list(PEERS), tmp_path
    )


def compare(mode: str, job: Job, peers: list[str], folder: Path) -> None:
    """Rankdeck, the loop by hand and peers take turns at the same job; prints their rates."""
    missing = [package for name, package in PEERS.items() if name in peers and not importlib.util.find_spec(package)]
    if missing:
        print(f"\nnot installed: {', '.join(missing)}")
    starts: list[Callable[[], Contender]] = [
        partial(loop, name, job, folder / name) for name in ["by_hand", *peers] if PEERS.get(name) not in missing
    ]
    starts.insert(1, lambda: rankdeck(mode, job, folder / "run"))
    turns = take_turns(starts, TURNS)
    print(
        f"\n{mode}, {job.world} rank(s) on {job.device}, {job.shape}, {job.batch} × {job.length} tokens a rank and step"
    )
    for name, timed in turns.items():
        tokens = rate(timed) * job.batch * job.length
        print(f"{name}: {tokens:,.0f} tokens/s, ratio to by hand {shown(timed, turns[HAND])}")
    assert all(rate(timed) > 0 for timed in turns.values())
