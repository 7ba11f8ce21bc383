"""Tokens a second through Rankdeck beside the same model in a loop written by hand; one rank, and two under DDP.

    pytest -m benchmark -s tests/benchmarks/bench_training.py

Both are run in turn, several times, because a machine that is used for other things changes under one's hands.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median, quantiles

import pytest

from core.platforms import physical_cores
from tests.workers.hosted_run import ROOT, host, lines, make_run, write_text

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]
ROUNDS = 3
STEPS = 40
SKIPPED = 10
SHAPE = {"n_layer": 4, "n_head": 4, "n_embd": 128, "sample_tokens": 0}
BATCH, LENGTH = 8, 128

BY_HAND = """
import json, os, sys, time
import numpy as np, torch
import torch.distributed as dist
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from workers.recipes.minigpt.model import MiniGPT, Shape

rank, world, path, rendezvous, steps, batch, length = json.loads(sys.argv[1])
torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
torch.manual_seed(0)
model = MiniGPT(Shape(256, length, 4, 4, 128))
net = model
if world > 1:
    dist.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=world)
    net = DDP(model, gradient_as_bucket_view=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
tokens = np.fromfile(path, np.uint8)
picks = np.random.default_rng(rank)
times = []
for step in range(steps):
    began = time.perf_counter()
    places = picks.integers(0, len(tokens) - length - 1, batch)[:, None] + np.arange(length + 1)
    window = torch.from_numpy(tokens[places].astype(np.int64))
    loss = F.cross_entropy(net(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    loss.item()
    times.append(time.perf_counter() - began)
print(json.dumps(times))
"""


def undisturbed(times: list[float]) -> float:
    """The first decile: what a step takes when no other program is in the way."""
    return quantiles(times, n=10)[0]


def by_hand(world: int, text: Path, folder: Path, threads: int) -> float:
    """Seconds an undisturbed step takes in the loop written by hand."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": str(threads), "GLOO_SOCKET_IFNAME": "lo"}
    rendezvous = folder / "rendezvous"
    rendezvous.unlink(missing_ok=True)
    given = [world, str(text), rendezvous.as_uri(), STEPS, BATCH, LENGTH]
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", BY_HAND, json.dumps([rank, *given])],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(world)
    ]
    outputs = [rank.communicate(timeout=300)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * world
    times: list[float] = json.loads(outputs[0].splitlines()[-1])
    return undisturbed(times[SKIPPED:])


def through_rankdeck(world: int, text: Path, folder: Path) -> tuple[float, float]:
    """Seconds an undisturbed step takes, and the share spent waiting for data, as the run's metrics say."""
    mode = "single" if world == 1 else "ddp"
    store = make_run(
        folder, text, mode, world, steps=STEPS, batch_size=BATCH, seq_len=LENGTH, options=SHAPE,
        dataset_chunk_size=80, samples_per_block=800,
    )  # fmt: skip
    assert host(store, timeout_s=300) == 0
    steps = [line for line in lines(store, "step") if line["rank"] == 0][SKIPPED:]
    times = [line["step_time_s"] for line in steps]
    return undisturbed(times), sum(line["data_wait_s"] for line in steps) / sum(times)


@pytest.mark.parametrize("world", [1, 2])
def test_tokens_a_second(world: int, tmp_path: Path) -> None:
    text = write_text(tmp_path / "text.txt", 400_000)
    threads = max(1, physical_cores() // world)  # as the launch plan shares them out
    hand, ours, waits = [], [], []
    for number in range(ROUNDS):
        hand.append(by_hand(world, text, tmp_path, threads))
        step_s, wait = through_rankdeck(world, text, tmp_path / f"run{number}")
        ours.append(step_s)
        waits.append(wait)
    tokens = BATCH * LENGTH * world
    rates = [tokens / median(hand), tokens / median(ours)]
    print(f"\n{world} rank(s): by hand {rates[0]:,.0f} tokens/s, Rankdeck {rates[1]:,.0f} tokens/s")
    rounds = ", ".join(f"{h / o:.3f}" for h, o in zip(hand, ours, strict=True))
    print(f"ratio {rates[1] / rates[0]:.3f} (rounds: {rounds})")
    print(f"waiting for data: {100 * median(waits):.2f} % of a step")
    assert min(rates) > 0
