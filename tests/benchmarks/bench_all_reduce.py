"""All-reduce in place between rank processes: through shared memory, beside gloo over loopback.

    pytest -m benchmark -s tests/benchmarks/bench_all_reduce.py

Both ways alternate within one run; a round of small tensors is many of them in a row. One thread a rank.
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

from tests.workers.hosted_run import ROOT

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(900)]

SIZES: Final = {"64 KiB": 1 << 16, "1 MiB": 1 << 20, "25 MiB": 25 << 20, "100 MiB": 100 << 20}
ROUNDS: Final = 15
BYTES_A_ROUND: Final = 16 << 20

RANK: Final = """
import json, sys, time
import torch, torch.distributed as dist
from workers.exchange.choice import _SharedMemory
from workers.strategies.base import RankPlace
from workers.strategies.process_group import make_process_group

rank, world, rendezvous, wire, sizes, rounds, bytes_a_round = json.loads(sys.argv[1])
torch.set_num_threads(1)
place = RankPlace(rank, world, torch.device("cpu"), "gloo", rendezvous, 120.0)
group = make_process_group(place)
shared = _SharedMemory(group, place, torch.bfloat16 if wire else None)
found = {}
for name, size in sizes.items():
    tensor = torch.zeros(size // 4)
    repeats = max(1, bytes_a_round // size)
    times = {"gloo": [], "shared": []}
    for number in range(rounds + 1):
        for way, add_up in (("gloo", dist.all_reduce), ("shared", shared.all_reduce.sum)):
            tensor.fill_(float(rank))
            dist.barrier(group=group)
            add_up(tensor)
            assert tensor.min() == tensor.max() == world * (world - 1) / 2, way
            tensor.zero_()
            add_up(tensor[:1])  # ranks leave a barrier one after another, and this together
            began = time.perf_counter()
            for _ in range(repeats):
                add_up(tensor)
            if number:
                times[way].append((time.perf_counter() - began) / repeats)
    found[name] = times
shared.close()
dist.destroy_process_group()
print(json.dumps(found))
"""


def measure(world: int, wire: bool, folder: Path) -> dict[str, dict[str, list[float]]]:
    """Seconds of every round, by size and way, in rank 0."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
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
        gloo, shared = times["gloo"], times["shared"]
        ratios = [a / b for a, b in zip(gloo, shared, strict=True)]
        print(
            f"{name:>8}: gloo {median(gloo) * 1e3:8.3f} ms, shared memory {median(shared) * 1e3:8.3f} ms, "
            f"ratio {median(ratios):5.2f} (of the best rounds {min(gloo) / min(shared):.2f}), "
            f"{SIZES[name] / median(shared) / 1e9:.1f} GB/s"
        )
        assert min(shared) > 0
