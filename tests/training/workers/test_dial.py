"""Rounds of independent ranks on real processes: against DDP, against DiLoCo's formula, and when one stops or dies."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from core.config.sync import DILOCO, Synchronisation
from tests.helpers.rank_processes import run_rank_processes

pytestmark = [pytest.mark.slow, pytest.mark.windows, pytest.mark.timeout(240)]
WORLD = 3


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each of three ranks says."""
    pytest.importorskip("torch", reason="trains for real")
    return run_rank_processes("tests.training.workers.dial_rank", WORLD, tmp_path_factory.mktemp("dial"))


def test_averaging_at_every_step_is_ddp(ranks: list[dict[str, Any]]) -> None:
    assert all(rank["apart_from_ddp"] < 1e-6 for rank in ranks)


def test_the_outer_step_is_nesterov_sgd_on_the_mean_difference(ranks: list[dict[str, Any]]) -> None:
    import torch

    assert all(rank["together"] == ranks[0]["together"] for rank in ranks), "all ranks hold the same bits"
    shared = torch.nn.Parameter(torch.tensor(ranks[0]["together"][0]))
    outer = torch.optim.SGD([shared], lr=0.7, momentum=0.9, nesterov=True)
    shares = [(number + 1) / sum(range(1, WORLD + 1)) for number in range(WORLD)]  # by samples: 1 : 2 : 3
    for number in range(3):
        mean = sum(share * torch.tensor(rank["apart"][number]) for share, rank in zip(shares, ranks, strict=True))
        shared.grad = shared.detach() - mean
        outer.step()
        expected = shared.detach() if number < 2 else mean  # the last round takes the mean itself
        torch.testing.assert_close(torch.tensor(ranks[0]["together"][number + 1]), expected)
    numbers = len(ranks[0]["together"][0])
    assert [rank["sent"] for rank in ranks] == [3 * (2 * 2 * 4 * numbers // 3)] * WORLD
    assert all(rank["over"] for rank in ranks)


def test_one_that_stops_stops_all_before_the_weights_are_touched(ranks: list[dict[str, Any]]) -> None:
    assert [rank["met"] for rank in ranks] == [False] * WORLD
    assert all(rank["untouched"] and rank["round_after_stop"] == 0 for rank in ranks)


def test_a_checkpoint_of_this_round_gets_its_parts_before_the_weights_are_touched(ranks: list[dict[str, Any]]) -> None:
    assert [rank["parts"] for rank in ranks] == [[], [True], [True]]


@pytest.mark.skipif(sys.platform == "win32", reason="gloo there does not notice; the host of a run does, and ends it")
def test_a_rank_whose_others_are_gone_is_told(ranks: list[dict[str, Any]]) -> None:
    words = ranks[0]["left"]
    assert words not in ("", "nothing"), words  # how it is put is the system's business


def test_words_of_a_rule() -> None:
    assert Synchronisation(1, "average", 1.0, 0.0).text == "every step by averaging"
    assert "1,000 steps by DiLoCo (outer learning rate 0.7" in Synchronisation(1000, DILOCO, 0.7, 0.9).text
