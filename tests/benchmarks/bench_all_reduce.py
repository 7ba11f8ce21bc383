"""All-reduce of the same tensor again and again, as of DDP's buckets: through shared memory, beside gloo over loopback.

    pytest -m benchmark -s tests/benchmarks/bench_all_reduce.py

`where it lies` is what DDP gets, `copied` is for tensors that are new each time. All ways alternate within one run; a
round of small tensors is many of them in a row. One thread a rank.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Final

import pytest

from core.processes.program_environment import program_environment

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]

SIZES: Final = {"64 KiB": 1 << 16, "1 MiB": 1 << 20, "25 MiB": 25 << 20, "100 MiB": 100 << 20}
ROUNDS: Final = 15
BYTES_A_ROUND: Final = 16 << 20

RANK: Final = """
import json, sys, time
import torch, torch.distributed as dist
from workers.all_reduce.choice import _SharedMemory
from workers.strategies.base import RankPlace
from workers.strategies.process_group import make_process_group

rank, world, rendezvous, wire, sizes, rounds, bytes_a_round = json.loads(sys.argv[1])
torch.set_num_threads(1)
place = RankPlace(rank, world, torch.device("cpu"), "gloo", rendezvous, 120.0)
group = make_process_group(place)
shared = _SharedMemory(group, place, torch.bfloat16 if wire else None)
found = {}
for name, size in sizes.items():
    shared.in_place.forget()
    tensors = {way: torch.zeros(size // 4) for way in ("gloo", "copied", "where it lies")}
    ways = {
        "gloo": dist.all_reduce,
        "copied": lambda tensor: shared.all_reduce.sum(tensor),
        "where it lies": lambda tensor: shared.reduce(tensor, 1.0, int(tensor.numel() == 1)),
    }
    repeats = max(1, bytes_a_round // size)
    times = {way: [] for way in ways}
    for number in range(rounds + 3):
        for way, add_up in ways.items():
            tensor = tensors[way]
            tensor.fill_(float(rank))
            dist.barrier(group=group)
            add_up(tensor)
            assert tensor.min() == tensor.max() == world * (world - 1) / 2, way
            tensor.zero_()
            add_up(tensor[:1])  # ranks leave a barrier one after another, and this together
            began = time.perf_counter()
            for _ in range(repeats):
                add_up(tensor)
            if number >= 3:  # by then it is known where it lies
                times[way].append((time.perf_counter() - began) / repeats)
    found[name] = times
    assert wire or shared.in_place.shared
shared.close()
dist.destroy_process_group()
print(json.dumps(found))
"""


def measure(world: int, wire: bool, folder: Path) -> dict[str, dict[str, list[float]]]:
    """Seconds of every round, by size and way, in rank 0."""
    environment = program_environment(os.environ, {"OMP_NUM_THREADS": "1"})
    given = [world, (folder / "rendezvous").as_uri(), wire, SIZES, ROUNDS, BYTES_A_ROUND]
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, json.dumps([rank, *given])],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(world)
    ]
    outputs = [rank.communicate(timeout=600)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * world
    found: dict[str, dict[str, list[float]]] = json.loads(outputs[0].splitlines()[-1])
    return found


@pytest.mark.parametrize(("world", "wire"), [(2, False), (3, False), (4, False), (2, True)])
def test_all_reduce(world: int, wire: bool, tmp_path: Path) -> None:
    found = measure(world, wire, tmp_path)
    print(f"\nall-reduce in place, fp32{' as bf16 on the wire' if wire else ''}, {world} ranks, {os.cpu_count()} cores")
    for name, times in found.items():
        gloo = times.pop("gloo")
        print(f"{name:>8}: gloo {median(gloo) * 1e3:8.3f} ms", end="")
        for way, shared in times.items():
            ratios = [a / b for a, b in zip(gloo, shared, strict=True)]
            print(
                f"; {way} {median(shared) * 1e3:7.3f} ms, ratio {median(ratios):5.2f} "
                f"(of the best rounds {min(gloo) / min(shared):.2f})",
                end="",
            )
            assert min(shared) > 0
        print()
