"""Sums through shared memory between real processes: right, the same everywhere, and gone afterwards."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.training.workers.all_reduce.rank_runs import outcomes, ranks

pytest.importorskip("torch", reason="sums tensors")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
SHARED_FILES = Path("/dev/shm")
# A sum of three takes another order in gloo: the last bit may differ.
ROUNDING = {"torch.float32": 3e-7, "torch.float64": 6e-16, "torch.float16": 2e-3, "torch.bfloat16": 2e-2}
DEAD_WITHIN_S = 5.0  # as promised; usually half a second


def shared_files() -> set[str]:
    """Names of shared memory, where it has any."""
    return {path.name for path in SHARED_FILES.iterdir()} if SHARED_FILES.is_dir() else set()


@pytest.fixture(scope="module", autouse=True)
def nothing_left() -> Iterator[None]:
    """All of these runs together leave no shared memory behind."""
    before = shared_files()
    yield
    assert shared_files() <= before


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What two ranks found."""
    return outcomes("sums,shapes,half_wire,in_place,no_room", 2, tmp_path_factory.mktemp("two"))


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What three ranks found."""
    return outcomes("sums,shapes,half_wire,in_place,no_room", 3, tmp_path_factory.mktemp("three"))


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


def test_three_ranks_take_means(three: list[dict[str, Any]]) -> None:
    found = [rank["shapes"] for rank in three]
    assert found[0] == found[1] == found[2]
    assert found[0]["crooked"][1] == pytest.approx([2.0, 10.0, 18.0])
    assert found[0]["many"] == pytest.approx([1.0] * 17)


@pytest.mark.windows
def test_half_the_bytes(two: list[dict[str, Any]]) -> None:
    first, second = (rank["half_wire"] for rank in two)
    assert first["digests"] == second["digests"]
    assert 0 < first["error"] <= 2 * 2**-6  # values below 8, each rounded once to 8 bits


def test_half_the_bytes_among_three(three: list[dict[str, Any]]) -> None:
    found = [rank["half_wire"] for rank in three]
    assert all(rank["digests"] == found[0]["digests"] for rank in found)
    assert 0 < found[0]["error"] <= 3 * 2**-6 + 2**-5  # and their sum, below 16, once more


@pytest.mark.windows
def test_sums_where_tensors_lie_have_the_bits_of_the_slots(two: list[dict[str, Any]]) -> None:
    check_in_place([rank["in_place"] for rank in two])


def test_three_ranks_sum_where_tensors_lie(three: list[dict[str, Any]]) -> None:
    check_in_place([rank["in_place"] for rank in three])


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
    (left,) = (rank["die_in_place"] for rank in outcomes("die_in_place", 2, tmp_path, dead=1))
    assert left["type"] == "PeerLostError" and "rank 1 (process" in left["cause"]
    assert left["s"] < DEAD_WITHIN_S


@pytest.mark.windows
@pytest.mark.parametrize("world", [2, 3])
def test_a_dead_rank_is_noticed(world: int, tmp_path: Path) -> None:
    for rank in outcomes("die", world, tmp_path, dead=1):
        left = rank["die"]
        assert left["type"] == "PeerLostError" and left["title"] == "Another rank ended"
        assert f"rank {world - 1} (process" in left["cause"]
        assert left["s"] < DEAD_WITHIN_S


@pytest.mark.windows
def test_nothing_is_left_when_all_are_killed(tmp_path: Path) -> None:
    before = shared_files()
    with ranks("hold", 2, tmp_path) as started:
        for number, rank in enumerate(started):
            assert rank.stdout is not None
            assert rank.stdout.readline().strip() == f"holding {number}", rank.communicate()[1]
        children = [child for rank in started for child in psutil.Process(rank.pid).children()]
        for rank in started:
            os.kill(rank.pid, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)
        assert all(rank.wait(10) != 0 for rank in started)
    assert children == []  # no tracker beside them
    assert shared_files() <= before
