"""Sums through shared memory between real processes: right, the same everywhere, and gone afterwards."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

pytest.importorskip("torch", reason="sums tensors")

import torch
import torch.distributed as dist
from torch import Tensor

from tests.helpers.rank_processes import run_ranks, started_ranks
from tests.training.rank_program import BareRank
from tests.training.workers.all_reduce.observed import digest, error_of
from workers.all_reduce import in_place_sum
from workers.all_reduce.choice import _SharedMemory
from workers.all_reduce.in_place_sum import CHUNK_BYTES
from workers.all_reduce.shared_all_reduce import SLICE_BYTES, arena_bytes
from workers.strategies.base import RankPlace
from workers.strategies.process_group import make_process_group

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
SHARED_FILES = Path("/dev/shm")
# A sum of three takes another order in gloo: the last bit may differ.
ROUNDING = {"torch.float32": 3e-7, "torch.float64": 6e-16, "torch.float16": 2e-3, "torch.bfloat16": 2e-2}
DEAD_WITHIN_S = 5.0  # as promised; usually half a second
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32)
HOLD_S = 60.0


def sizes(world: int, dtype: torch.dtype) -> list[int]:
    """One element, odd ones, around a piece, some pieces; for float32 more than the whole arena."""
    piece = SLICE_BYTES // dtype.itemsize
    large = arena_bytes(world) // 4 + 5 if dtype == torch.float32 else 3 * piece + 13
    return [1, 63, 1001, piece - 1, piece, large]


def numbers(dtype: torch.dtype, count: int, rank: int) -> Tensor:
    made = torch.Generator().manual_seed(1000 * rank + count)
    if dtype.is_floating_point:
        return torch.randn(count, generator=made, dtype=torch.float64).to(dtype)
    return torch.randint(-(2**30), 2**30, (count,), generator=made, dtype=dtype)


def sums(shared: _SharedMemory, place: RankPlace) -> dict[str, Any]:
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
    before = in_place_sum.refusal
    if place.rank == place.world_size - 1:
        in_place_sum.refusal = lambda needed_bytes: f"no room for {needed_bytes} bytes"
    tensor = torch.empty(1000)
    for _ in range(4):
        tensor.fill_(float(place.rank))
        shared.in_place.sum(tensor, 1.0, 0)
    in_place_sum.refusal = before
    return {"problem": shared.in_place.problem, "shared": shared.in_place.shared, "sum": tensor[-1].item()}


def die_in_place(shared: _SharedMemory, place: RankPlace) -> dict[str, Any]:
    """The last rank dies between two sums of a tensor that all ranks see."""
    tensor = torch.ones(1 << 20)
    for _ in range(4):
        shared.in_place.sum(tensor, 1.0, 0)
    assert shared.in_place.shared == 1
    if place.rank == place.world_size - 1:
        os._exit(9)
    return error_of(lambda: shared.in_place.sum(tensor, 1.0, 0))


def die(shared: _SharedMemory, place: RankPlace) -> dict[str, Any]:
    """The last rank dies in the middle of a sum; the others say what they noticed, and when."""
    shared.all_reduce.sum(torch.ones(10))
    if place.rank == place.world_size - 1:
        os._exit(9)
    return error_of(lambda: shared.all_reduce.sum(torch.ones(1 << 20)))


SCENARIOS: dict[str, Callable[[_SharedMemory, RankPlace], dict[str, Any]]] = {
    "sums": sums, "shapes": shapes, "in_place": in_place, "no_room": no_room,
    "die": die, "die_in_place": die_in_place,
}  # fmt: skip


ALIVE = ("sums", "shapes", "in_place", "no_room")


def in_turn(rank: BareRank, *names: str) -> dict[str, Any]:
    """One scenario after the other, all of them in one process group."""
    place = rank.place("all")
    group = make_process_group(place)
    found = {}
    for name in names:
        shared = _SharedMemory(group, place)
        found[name] = SCENARIOS[name](shared, place)
        shared.close()
    return found


def hold(rank: BareRank) -> None:
    place = rank.place("all")
    shared = _SharedMemory(make_process_group(place), place)
    tensor = torch.zeros(1 << 20)
    for _ in range(3):
        shared.in_place.sum(tensor, 1.0, 0)
    assert shared.in_place.shared == 1
    (rank.folder / f"holding {rank.rank}").touch()
    until = time.monotonic() + HOLD_S
    while time.monotonic() < until:
        shared.in_place.sum(tensor, 1.0, 0)


def shared_files() -> set[str]:
    return {path.name for path in SHARED_FILES.iterdir()} if SHARED_FILES.is_dir() else set()


@pytest.fixture(scope="module", autouse=True)
def nothing_left() -> Iterator[None]:
    """All of these runs together leave no shared memory behind."""
    before = shared_files()
    yield
    assert shared_files() <= before


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return run_ranks(in_turn, 2, tmp_path_factory.mktemp("two"), *ALIVE)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return run_ranks(in_turn, 3, tmp_path_factory.mktemp("three"), *ALIVE)


@pytest.mark.windows
def test_two_ranks_sum_as_gloo_does(two: list[dict[str, Any]]) -> None:
    first, second = (rank["sums"] for rank in two)
    assert first["digests"] == second["digests"] and len(first["digests"]) == 36
    assert first["differences"] == second["differences"] == []


def test_three_ranks_hold_the_same_bits(three: list[dict[str, Any]]) -> None:
    found = [rank["sums"] for rank in three]
    assert all(rank["digests"] == found[0]["digests"] for rank in found) and len(found[0]["digests"]) == 36
    assert all(worst <= ROUNDING[dtype] for rank in found for dtype, _, worst in rank["differences"])


@pytest.mark.windows
def test_means_refusals_and_many_in_a_row(two: list[dict[str, Any]]) -> None:
    first, second = (rank["shapes"] for rank in two)
    assert first == second
    assert first["crooked"][1] == [1.5, 7.5, 13.5]
    assert first["odd"] == ["nan", "inf", "-inf", "64992.0"]  # halved before the sum: no overflow
    assert first["many"] == [0.5] * 17
    assert len(first["refused"]) == 2 and "torch.bool" in first["refused"][0]


@pytest.mark.windows
def test_sums_where_tensors_lie_have_the_bits_of_the_slots(two: list[dict[str, Any]]) -> None:
    check_in_place([rank["in_place"] for rank in two])


def check_in_place(found: list[dict[str, Any]]) -> None:
    """All dtypes and sizes, and what becomes of a tensor that moved in one rank only."""
    assert len(found[0]["digests"]) == 4 * 4 * 4 + 3
    assert all(rank["digests"] == found[0]["digests"] and rank["differences"] == [] for rank in found)
    assert found[0]["digests"][-3:] == [found[0]["expected"]] * 3
    # New in rank 0 and so to all; known; shared anew in all at once.
    assert [rank["counts"] for rank in found] == [[16, 15, 16, 16]] * len(found)


@pytest.mark.parametrize("world", [2, 3])
def test_without_room_in_one_rank_all_go_through_the_slots(world: int, request: pytest.FixtureRequest) -> None:
    found = [rank["no_room"] for rank in request.getfixturevalue("two" if world == 2 else "three")]
    assert [rank["shared"] for rank in found] == [0] * world
    assert [rank["sum"] for rank in found] == [world * (world - 1) / 2] * world
    assert found[-1]["problem"].startswith("no room for ") and found[0]["problem"]


@pytest.mark.windows
def test_a_rank_that_dies_before_a_sum_in_place_is_noticed(tmp_path: Path) -> None:
    (left,) = (rank["die_in_place"] for rank in run_ranks(in_turn, 2, tmp_path, "die_in_place", dead=[9]))
    assert left["type"] == "PeerLostError" and "rank 1 (process" in left["cause"]
    assert left["s"] < DEAD_WITHIN_S


@pytest.mark.windows
@pytest.mark.parametrize("world", [2, 3])
def test_a_dead_rank_is_noticed(world: int, tmp_path: Path) -> None:
    for rank in run_ranks(in_turn, world, tmp_path, "die", dead=[9]):
        left = rank["die"]
        assert left["type"] == "PeerLostError" and left["title"] == "Another process ended"
        assert f"rank {world - 1} (process" in left["cause"]
        assert left["s"] < DEAD_WITHIN_S


@pytest.mark.windows
def test_nothing_is_left_when_all_are_killed(tmp_path: Path) -> None:
    before = shared_files()
    files = [tmp_path / str(number) for number in range(2)]
    with started_ranks(hold, files, tmp_path, fresh=True) as ranks:
        deadline = time.monotonic() + HOLD_S
        while len(list(tmp_path.glob("holding *"))) < 2:
            assert time.monotonic() < deadline, [file.with_suffix(".err").read_text(encoding="utf-8") for file in files]
            time.sleep(0.02)
        children = [child for rank in ranks for child in psutil.Process(rank.pid).children()]
        for rank in ranks:
            os.kill(rank.pid, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
        assert all(rank.ended(10) not in (0, None) for rank in ranks)
    assert children == []  # no tracker beside them
    assert shared_files() <= before
