"""What each rank waits for the others, timed in the exchange of each mode, while one of them is late."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import Any, Final

import pytest

pytest.importorskip("torch", reason="trains for real")

import torch
from torch import Tensor, nn

from tests.helpers.rank_processes import run_ranks
from tests.training.rank_program import CPU, BareRank
from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

LATE_S: Final = 0.06
STEPS, SETTLING = 12, 3
WIDTH: Final = 512
RULE = Optimization(weight_decay=0.1, clip_norm=1.0)


class Late(nn.Module):
    """Four layers, in several of DDP's buckets; on one rank the second one is late in forward or backward passes."""

    def __init__(self, where: str, *, is_late: bool) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self._where = where if is_late else ""

    def forward(self, x: Tensor) -> Tensor:
        for number, layer in enumerate(self.layers):
            x = layer(x).relu()
            if number == 1 and self._where == "forward":
                time.sleep(LATE_S)
            if number == 1 and self._where == "backward" and x.requires_grad:
                x.register_hook(lambda _: time.sleep(LATE_S))
        return x


def waited(rank: BareRank, way: str, where: str, late: int, settings: dict[str, Any]) -> dict[str, Any]:
    """The median of what this rank waited in a step; the late one sleeps before the passes, or in them."""
    strategy = rank.set_up(way, **settings)
    torch.manual_seed(1)
    model = Late(where, is_late=rank.rank == late)
    replica = strategy.replicate(model, RULE, 0.01, Precision("fp32", CPU))
    waits: list[float | None] = []
    for _ in range(SETTLING + STEPS):
        if where == "before" and rank.rank == late:
            time.sleep(LATE_S)
        with replica.micro_batch(last=True):
            replica.backward(replica.module(torch.randn(4, WIDTH)).square().mean(), last=True)
        replica.update()
        waits.append(replica.sync_wait_s())
    strategy.close()
    measured = [wait for wait in waits[SETTLING:] if wait is not None]
    return {"wait_s": median(measured) if len(measured) == STEPS else None, "exchange": strategy.counters()}


@pytest.mark.parametrize(
    ("way", "where", "late", "settings"),
    [
        ("ddp", "before", 0, {"gradient_exchange": "shared"}),
        ("ddp", "backward", 1, {"gradient_exchange": "shared"}),
        ("ddp", "forward", 1, {"gradient_exchange": "plain"}),
        ("ddp", "backward", 0, {"gradient_exchange": "plain"}),
        ("zero1", "backward", 1, {}),
    ],
)
def test_the_others_wait_for_the_late_rank(
    way: str, where: str, late: int, settings: dict[str, Any], tmp_path: Path
) -> None:
    ranks = run_ranks(waited, 2, tmp_path, way, where, late, settings)
    own, other = ranks[late]["wait_s"], ranks[1 - late]["wait_s"]
    assert own is not None and other is not None
    assert other > own + LATE_S / 2 >= 0, "the late rank has only to send its gradients"


def test_independent_ranks_wait_for_nothing(tmp_path: Path) -> None:
    ranks = run_ranks(waited, 2, tmp_path, "independent", "before", 1, {})
    assert [rank["wait_s"] for rank in ranks] == [None, None]
