"""Tokens a second through Rankdeck beside a well-tuned loop by hand and the peers; and how much a second rank brings.

    python -m tests.benchmarks.run_all peers

Every round runs each contender once, in turn, so that what else this machine does falls on all alike. A contender
that is not installed is named and left out: `pip install accelerate lightning-fabric transformers`.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median

import psutil
import pytest

from core.platforms import physical_cores
from tests.benchmarks.loops.common import LEARNING_RATE, SHAPE, Job
from tests.workers.hosted_run import ROOT, host, lines, make_run, write_text

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(1800)]
ROUNDS = int(os.environ.get("RANKDECK_BENCH_ROUNDS", "4"))
STEPS, SKIPPED = 40, 8
BATCH, LENGTH = 8, 128
PEERS = {"accelerate_loop": "accelerate", "fabric_loop": "lightning_fabric", "trainer_loop": "transformers"}
NAMES = {
    "by_hand": "by hand",
    "accelerate_loop": "Accelerate",
    "fabric_loop": "Fabric",
    "trainer_loop": "HF Trainer",
    "rankdeck": "Rankdeck",
}


def rate(ends: list[float], ranks: int) -> float:
    """Tokens a second over all ranks, from the end of one step to the end of another."""
    span = ends[-1] - ends[SKIPPED - 1]
    return (len(ends) - SKIPPED) * BATCH * LENGTH * ranks / span


def loop(name: str, job: Job, folder: Path, cores: int) -> float:
    """Tokens a second of one of the loops, its ranks started as bare processes."""
    (folder / "rendezvous").unlink(missing_ok=True)
    port = 29_000 + os.getpid() % 20_000
    shared = {
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": str(max(1, cores // job.world)),
        "GLOO_SOCKET_IFNAME": "lo",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(job.world),
        "LOCAL_WORLD_SIZE": str(job.world),
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        **({"TORCHELASTIC_RUN_ID": "bench", "GROUP_RANK": "0"} if job.world > 1 else {}),
    }
    if job.world == 1:
        shared = {key: value for key, value in shared.items() if "WORLD" not in key and "MASTER" not in key}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-m", f"tests.benchmarks.loops.{name}", json.dumps(asdict(job, rank))],
            env={**os.environ, **shared, **({"RANK": str(rank), "LOCAL_RANK": str(rank)} if job.world > 1 else {})},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(job.world)
    ]
    outputs = [rank.communicate(timeout=600) for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * job.world, outputs[0][1][-2000:]
    rates = [rate(json.loads(output.strip().splitlines()[-1]), 1) for output, _ in outputs]
    return min(rates) * job.world if job.synchronised else sum(rates)


def asdict(job: Job, rank: int) -> dict[str, object]:
    """The job of one rank."""
    return dataclasses.asdict(dataclasses.replace(job, rank=rank))


def rankdeck(mode: str, world: int, text: Path, folder: Path) -> float:
    """Tokens a second through the real host and its ranks, by the moments at which steps were reported."""
    store = make_run(
        folder, text, mode, world, steps=STEPS, batch_size=BATCH, seq_len=LENGTH, lr=LEARNING_RATE, eval_every=None,
        options={**SHAPE, "sample_tokens": 0}, dataset_chunk_size=400, samples_per_block=4000,
    )  # fmt: skip
    assert host(store, timeout_s=600) == 0
    by_rank: dict[int, list[float]] = {}
    for line in lines(store, "step"):
        by_rank.setdefault(line["rank"], []).append(line["ts"])
    rates = [rate(ends, 1) for ends in by_rank.values()]
    assert len(rates) == world
    return sum(rates) if mode == "independent" else min(rates) * world


def table(title: str, rates: dict[str, list[float]]) -> None:
    """One line a contender: median tokens a second, and its ratio to the loop by hand, round by round."""
    print(f"\n{title}")
    for name, values in rates.items():
        ratios = [value / hand for value, hand in zip(values, rates["by_hand"], strict=True)]
        rounds = ", ".join(f"{ratio:.3f}" for ratio in ratios)
        print(f"{NAMES[name]}: {median(values):,.0f} tokens/s, ratio to by hand {median(ratios):.3f} ({rounds})")


@pytest.mark.parametrize(("mode", "world"), [("single", 1), ("ddp", 2), ("independent", 2)])
def test_beside_the_peers(mode: str, world: int, tmp_path: Path) -> None:
    text = write_text(tmp_path / "text.txt", 2_000_000)
    job = Job(0, world, str(text), (tmp_path / "rendezvous").as_uri(), STEPS, BATCH, LENGTH, mode != "independent")
    names = ["by_hand", "rankdeck"]
    if mode != "independent":  # the peers have no such mode
        names += [name for name, package in PEERS.items() if importlib.util.find_spec(package)]
        missing = [package for name, package in PEERS.items() if name not in names]
        if missing:
            print(f"\nnot installed: {', '.join(missing)}")
    rates: dict[str, list[float]] = {name: [] for name in names}
    for number in range(ROUNDS):
        for name in names if number % 2 == 0 else reversed(names):
            measured = (
                rankdeck(mode, world, text, tmp_path / f"run{number}")
                if name == "rankdeck"
                else loop(name, job, tmp_path, physical_cores())
            )
            rates[name].append(measured)
    table(f"{mode}, {world} rank(s), {BATCH} × {LENGTH} tokens a rank and step", rates)
    assert all(value > 0 for values in rates.values() for value in values)


@pytest.mark.skipif(not hasattr(psutil.Process, "cpu_affinity"), reason="needs cores that can be assigned")
def test_weak_scaling(tmp_path: Path) -> None:
    """Two ranks of one thread beside one rank of one thread on one core."""
    if physical_cores() < 2:
        pytest.skip("needs two cores")
    text = write_text(tmp_path / "text.txt", 2_000_000)
    me = psutil.Process()
    cores = me.cpu_affinity()
    figures: dict[str, list[float]] = {"ddp": [], "independent": []}
    for number in range(ROUNDS):
        me.cpu_affinity(cores[:1])
        try:
            alone = rankdeck("single", 1, text, tmp_path / f"alone{number}")
        finally:
            me.cpu_affinity(cores)
        for mode, values in figures.items():
            both = rankdeck(mode, 2, text, tmp_path / f"{mode}{number}")
            values.append(both / (2 * alone))
    for mode, values in figures.items():
        rounds = ", ".join(f"{value:.3f}" for value in values)
        print(f"\nweak scaling, {mode}, 2 ranks of 1 thread: {median(values):.3f} ({rounds})")
    assert all(value > 0 for values in figures.values() for value in values)
