"""One of several real processes that exchange tensors; prints one JSON line. Run by the tests beside it.

python -m tests.training.workers.all_reduce.exchange_rank WHAT[,WHAT…] RANK WORLD FOLDER
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from core.errors import RankdeckError
from workers.all_reduce import GradientAllReduce, choose_all_reduce, in_place_sum, shared_tensor
from workers.all_reduce.choice import _SharedMemory
from workers.all_reduce.in_place_sum import CHUNK_BYTES
from workers.all_reduce.power_sgd import WHOLE_STEPS, PowerSgd
from workers.all_reduce.shared_all_reduce import SLICE_BYTES, SharedAllReduce, arena_bytes
from workers.host_link.failures import explain
from workers.strategies.base import RankPlace
from workers.strategies.process_group import make_process_group

DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32)
STEPS = 5
HOLD_S = 60.0


def sizes(world: int, dtype: torch.dtype) -> list[int]:
    """One element, odd ones, around a piece, some pieces; for float32 more than the whole arena."""
    piece = SLICE_BYTES // dtype.itemsize
    large = arena_bytes(world) // 4 + 5 if dtype == torch.float32 else 3 * piece + 13
    return [1, 63, 1001, piece - 1, piece, large]


def digest(tensor: Tensor) -> str:
    """Its bits."""
    return hashlib.sha256(tensor.contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()


def numbers(dtype: torch.dtype, count: int, rank: int) -> Tensor:
    """Values that differ from rank to rank."""
    made = torch.Generator().manual_seed(1000 * rank + count)
    if dtype.is_floating_point:
        return torch.randn(count, generator=made, dtype=torch.float64).to(dtype)
    return torch.randint(-(2**30), 2**30, (count,), generator=made, dtype=dtype)


def sums(shared: _SharedMemory, place: RankPlace) -> dict[str, Any]:
    """Every dtype and size beside gloo's own sum."""
    digests, differences = [], []
    for dtype in DTYPES:
        for count in sizes(place.world_size, dtype):
            given = numbers(dtype, count, place.rank)
            expected, got = given.clone(), given.clone()
            dist.all_reduce(expected)
            shared.all_reduce.sum(got)
            digests.append(digest(got))
            if not torch.equal(got, expected):
                worst = (got.double() - expected.double()).abs().max() / expected.double().abs().max()
                differences.append([str(dtype), count, float(worst)])
    return {"digests": digests, "differences": differences}


def shapes(shared: _SharedMemory, place: RankPlace) -> dict[str, Any]:
    """A mean of what is not contiguous, not finite, empty; refusals; many small sums in a row."""
    crooked = torch.arange(12.0).view(3, 4).t() * (place.rank + 1)
    shared.all_reduce.sum(crooked, 1.0 / place.world_size)
    odd = torch.tensor([float("nan"), float("inf"), -float("inf"), 65000.0], dtype=torch.float16)
    shared.all_reduce.sum(odd, 1.0 / place.world_size)
    shared.all_reduce.sum(torch.empty(0))
    refused = []
    for tensor, factor in ((torch.ones(3, dtype=torch.bool), 1.0), (torch.ones(3, dtype=torch.int64), 0.5)):
        try:
            shared.all_reduce.sum(tensor, factor)
        except TypeError as error:
            refused.append(str(error))
    many = torch.full((17,), float(place.rank))
    for _ in range(2000):
        shared.all_reduce.sum(many, 1.0 / place.world_size)
    return {
        "crooked": crooked.tolist(),
        "odd": [str(x) for x in odd.tolist()],
        "refused": refused,
        "many": many.tolist(),
    }


def half_wire(shared: _SharedMemory, place: RankPlace) -> dict[str, Any]:
    """float32 as bfloat16, beside an exact sum."""
    digests, errors = [], []
    for count in sizes(place.world_size, torch.float32):
        given = numbers(torch.float32, count, place.rank)
        exact, got = given.double(), given.clone()
        dist.all_reduce(exact)
        shared.all_reduce.sum(got)
        digests.append(digest(got))
        errors.append(float((got.double() - exact).abs().max()))
    return {"digests": digests, "error": max(errors)}


def in_place(shared: _SharedMemory, place: RankPlace) -> dict[str, Any]:
    """Tensors that come again, beside the same sums through the slots; then one rank's moves elsewhere."""
    factor, digests, differences, number = 1.0 / place.world_size, [], [], 0
    for dtype in DTYPES[:4]:
        for count in [1, 63, 1001, 3 * CHUNK_BYTES // dtype.itemsize + 13]:
            given = numbers(dtype, count, place.rank)
            expected, got = given.clone(), torch.empty_like(given)
            shared.all_reduce.sum(expected, factor)
            for _ in range(4):
                got.copy_(given)
                shared.in_place.sum(got, factor, number)
                digests.append(digest(got))
                if digests[-1] != digest(expected):
                    differences.append([str(dtype), count])
            number += 1
    moved = got.clone() if place.rank == 0 else got
    counts = [shared.in_place.shared]
    for _ in range(3):
        moved.copy_(given)
        shared.in_place.sum(moved, factor, number - 1)
        counts.append(shared.in_place.shared)
        digests.append(digest(moved))
    return {"digests": digests, "differences": differences, "counts": counts, "expected": digest(expected)}


def no_room(shared: _SharedMemory, place: RankPlace) -> dict[str, Any]:
    """The last rank cannot share its tensors: all go on through the slots."""
    if place.rank == place.world_size - 1:
        in_place_sum.refusal = lambda needed_bytes: f"no room for {needed_bytes} bytes"
    tensor = torch.empty(1000)
    for _ in range(4):
        tensor.fill_(float(place.rank))
        shared.in_place.sum(tensor, 1.0, 0)
    in_place_sum.refusal = shared_tensor.refusal
    return {"problem": shared.in_place.problem, "shared": shared.in_place.shared, "sum": tensor[-1].item()}


def die_in_place(shared: _SharedMemory, place: RankPlace) -> dict[str, Any]:
    """The last rank dies between two sums of a tensor that all ranks see."""
    tensor = torch.ones(1 << 20)
    for _ in range(4):
        shared.in_place.sum(tensor, 1.0, 0)
    assert shared.in_place.shared == 1
    if place.rank == place.world_size - 1:
        os._exit(9)
    began = time.monotonic()
    try:
        shared.in_place.sum(tensor, 1.0, 0)
    except RankdeckError as error:
        return {"title": error.title, "cause": error.cause, "type": type(error).__name__, "s": time.monotonic() - began}
    return {}


def die(shared: _SharedMemory, place: RankPlace) -> dict[str, Any]:
    """The last rank dies in the middle of a sum; the others say what they noticed, and when."""
    shared.all_reduce.sum(torch.ones(10))
    if place.rank == place.world_size - 1:
        os._exit(9)
    began = time.monotonic()
    try:
        shared.all_reduce.sum(torch.ones(1 << 20))
    except RankdeckError as error:
        return {"title": error.title, "cause": error.cause, "type": type(error).__name__, "s": time.monotonic() - began}
    return {}


def hold(shared: _SharedMemory, place: RankPlace) -> dict[str, Any]:
    """Stays in an exchange until somebody kills it."""
    tensor = torch.zeros(1 << 20)
    for _ in range(3):
        shared.in_place.sum(tensor, 1.0, 0)
    assert shared.in_place.shared == 1
    print(f"holding {place.rank}", flush=True)
    until = time.monotonic() + HOLD_S
    while time.monotonic() < until:
        shared.in_place.sum(tensor, 1.0, 0)
    return {}


def make_model() -> nn.Module:
    """Some buckets' worth."""
    torch.manual_seed(1)
    layers = [layer for _ in range(6) for layer in (nn.Linear(200, 200), nn.GELU())]
    return nn.Sequential(*layers, nn.Linear(200, 3))


def trained(place: RankPlace, exchange: GradientAllReduce | None, steps: int = STEPS, **options: Any) -> list[str]:
    """Digests of the weights after a few steps in several small buckets, accumulation included."""
    model = make_model()
    given = {"gradient_as_bucket_view": True, "bucket_cap_mb": 0.2, **options}
    ddp = DistributedDataParallel(model, **{**given, **(exchange.ddp_options if exchange else {})})
    if exchange is not None:
        exchange.register(ddp)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    data = torch.randn(steps, 2, 8, 200, generator=torch.Generator().manual_seed(place.rank))
    for step in range(steps):
        # A static graph has to be seen whole in its first step.
        with ddp.no_sync() if step or "static_graph" not in options else nullcontext():
            torch.autograd.backward(ddp(data[step, 0]).square().mean())
        torch.autograd.backward(ddp(data[step, 1]).square().mean())
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return [digest(parameter.detach()) for parameter in model.parameters()]


def train(group: dist.ProcessGroup, place: RankPlace) -> dict[str, Any]:
    """Plain DDP and DDP through shared memory from the same start."""
    exchange = choose_all_reduce(group, place, 4_000_000, "shared")
    variants: dict[str, dict[str, Any]] = {
        "views": {},
        "copies": {"gradient_as_bucket_view": False},
        "static": {"static_graph": True},
        "one": {"bucket_cap_mb": 50},
    }
    if sys.platform == "win32":  # a step over gloo takes seconds under Wine
        variants = {"views": variants["views"]}
    plain = {name: trained(place, None, **options) for name, options in variants.items()}
    ours = {name: trained(place, exchange, **options) for name, options in variants.items()}
    assert exchange._shared is not None
    in_place = exchange._shared.in_place.shared
    wait, name, words, speeds = exchange.sync_wait_s, exchange.name, exchange.summary, exchange.speeds
    exchange.close()
    exchange.close()
    assert speeds is not None
    return {
        "name": name, "words": words, "waited": wait is not None and 0 <= wait < HOLD_S,
        "rates": [speeds.shared_mb_per_s, speeds.gloo_mb_per_s],
        "plain": plain, "ours": ours, "in_place": in_place,
    }  # fmt: skip


def ways(group: dist.ProcessGroup, place: RankPlace) -> dict[str, Any]:
    """Each way by name trains (PowerSGD from its tenth step on), and all ranks end the same."""
    found = {}
    for wanted in ("auto", "plain", "fp16", "bf16", "powersgd"):
        exchange = choose_all_reduce(group, place, 4_000_000, wanted)
        found[wanted] = [exchange.name, exchange.summary, trained(place, exchange, 3 * STEPS)]
        exchange.close()
    return found


def owed(group: dist.ProcessGroup, place: RankPlace) -> dict[str, Any]:
    """Gradients of a model that goes on with PowerSGD's memory, with one of other buckets, and without any."""
    data = torch.randn(8, 200, generator=torch.Generator().manual_seed(place.rank))

    def start() -> tuple[PowerSgd, Callable[[], str]]:
        exchange = choose_all_reduce(group, place, 4_000_000, "powersgd")
        ddp = DistributedDataParallel(make_model(), gradient_as_bucket_view=True, **exchange.ddp_options)
        exchange.register(ddp)
        assert exchange.power_sgd is not None

        def step() -> str:
            ddp.zero_grad()
            torch.autograd.backward(ddp(data).square().mean())
            return digest(torch.cat([p.grad.reshape(-1) for p in ddp.parameters() if p.grad is not None]))

        step()  # DDP's buckets are the final ones afterwards
        return exchange.power_sgd, step

    first, first_step = start()
    for _ in range(WHOLE_STEPS + 3):
        first_step()
    tensors, values = first.memory()
    kept = {name: tensor.clone() for name, tensor in tensors.items()}
    (order,) = values["order"].values()
    memories = {
        "same": (kept, dict(values)),
        "other": (kept, {**values, "order": {"0": order[::-1]}}),
    }
    found: dict[str, Any] = {"never stopped": first_step(), "steps": {}, "kept": sorted(kept)}
    for name, memory in memories.items():
        again, again_step = start()
        again.recall(memory)
        assert again.memory() is memory, "a commit before the next step writes what was read"
        found[name] = again_step()
        found["steps"][name] = again.memory()[1]["steps"] - values["steps"]
    fresh, fresh_step = start()
    found["without"], found["steps"]["without"] = fresh_step(), fresh.memory()[1]["steps"]
    return found


def agree(group: dist.ProcessGroup, place: RankPlace) -> dict[str, Any]:
    """What training through shared memory ends with."""
    exchange = choose_all_reduce(group, place, 4_000_000, "shared")
    weights = trained(place, exchange)
    exchange.close()
    return {"name": exchange.name, "weights": weights}


def surprises(group: dist.ProcessGroup, place: RankPlace) -> dict[str, Any]:
    """Shared memory that sums wrongly, or not at all, in one of the ranks: all go over gloo."""
    right = SharedAllReduce.sum

    def wrong(self: SharedAllReduce, tensor: Tensor, factor: float = 1.0) -> None:
        right(self, tensor, factor)
        tensor[-1] += 1

    def raising(self: SharedAllReduce, tensor: Tensor, factor: float = 1.0) -> None:
        raise OSError(f"no {tensor.dtype} today, {factor} times {self._rank}")

    found = {}
    for name, fault in (("wrong", wrong), ("raising", raising)):
        if place.rank == 1:
            SharedAllReduce.sum = fault  # type: ignore[method-assign]
        exchange = choose_all_reduce(group, place, 4_000_000, "shared")
        SharedAllReduce.sum = right  # type: ignore[method-assign]
        found[name] = [exchange.name, exchange.summary, exchange.fallback]
        exchange.close()
    return found


def die_in_training(group: dist.ProcessGroup, place: RankPlace) -> dict[str, Any]:
    """The last rank dies between two steps; the others' backward pass says so."""
    exchange = choose_all_reduce(group, place, 4_000_000, "shared")
    model = make_model()
    ddp = DistributedDataParallel(model, gradient_as_bucket_view=True, bucket_cap_mb=0.2)
    exchange.register(ddp)
    for _ in range(3):  # DDP talks over gloo once more before its second step
        torch.autograd.backward(ddp(torch.randn(4, 200)).sum())
    if place.rank == place.world_size - 1:
        os._exit(9)
    began = time.monotonic()
    try:
        torch.autograd.backward(ddp(torch.randn(4, 200)).sum())
    except RankdeckError as error:
        exchange.close()
        seconds = time.monotonic() - began
        report = asdict(explain(error, "cpu:0"))
        return {"cause": error.cause, "type": type(error).__name__, "s": seconds, "report": report}
    return {}


WITH_SHARED: dict[str, Callable[[_SharedMemory, RankPlace], dict[str, Any]]] = {
    "sums": sums, "shapes": shapes, "half_wire": half_wire, "in_place": in_place, "no_room": no_room,
    "die": die, "die_in_place": die_in_place, "hold": hold,
}  # fmt: skip
WITH_GROUP: dict[str, Callable[[dist.ProcessGroup, RankPlace], dict[str, Any]]] = {
    "train": train, "ways": ways, "owed": owed, "agree": agree, "surprises": surprises,
    "die_in_training": die_in_training,
}  # fmt: skip


def main(names: str, rank: int, world: int, folder: Path) -> None:
    """Meets the other ranks, does one thing after another, says what came of each."""
    torch.set_num_threads(1)
    place = RankPlace(rank, world, torch.device("cpu"), "gloo", (folder / "rendezvous").as_uri(), timeout_s=60.0)
    group = make_process_group(place)
    found: dict[str, Any] = {}
    for what in names.split(","):
        if what in WITH_GROUP:
            found[what] = WITH_GROUP[what](group, place)
        else:
            shared = _SharedMemory(group, place, torch.bfloat16 if what == "half_wire" else None)
            found[what] = WITH_SHARED[what](shared, place)
            shared.close()
    print(json.dumps(found), flush=True)
    if "die" in names:
        os._exit(0)  # the group has lost a member: leaving it in order would wait
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
