"""Bytes and seconds of a step's exchange, against values computed by hand."""

from __future__ import annotations

import pytest

from core.config.mode import Mode
from core.measure.estimate.memory import Layout
from core.measure.estimate.traffic import Traffic, step_traffic
from core.measure.link import Link
from tests.unit.core.measure.estimate.made import FIGURES, MB

# A tensor of 100 MB is summed in 0.2 s, through shared memory in 0.02 s.
LINK = Link(mb_per_s=500.0, latency_s=0.001, ranks=2, backend="gloo", shared_mb_per_s=5000.0)


def layout(mode: Mode, stage: int = 0, **changes: object) -> Layout:
    values = {"by_deepspeed": False, "ranks": 2, "micro_batch": 8, "accumulation": 1, **changes}
    return Layout(mode, stage, **values)  # type: ignore[arg-type]


def test_ddp_sums_gradients_once_a_step() -> None:
    traffic = step_traffic(FIGURES, layout(Mode.DDP, accumulation=4), by_nccl=False)
    assert traffic == Traffic(100 * MB, 0.0, 4)  # 100 MB in buckets of 26.2 MB
    assert traffic.sent_bytes(2) == 100 * MB  # 2 (2 - 1) / 2
    assert traffic.sent_bytes(4) == 150 * MB  # 2 (4 - 1) / 4
    assert traffic.seconds(LINK) == pytest.approx(0.2 + 4 * 0.001)
    assert traffic.seconds(LINK, shared_memory=True) == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("stage", "changes", "by_nccl", "sent"),
    [
        # W = T = 100 MB and two ranks: a gather or a reduce-scatter sends 50 MB, an all-reduce 100 MB.
        (1, {}, False, 150),  # all-reduce, then new weights
        (1, {"by_deepspeed": True}, True, 100),  # reduce-scatter and gather, as much as DDP
        (1, {"by_deepspeed": True}, False, 150),  # gloo's reduce-scatter is an all-reduce
        (2, {}, True, 100),
        (2, {}, False, 150),
        (2, {"accumulation": 4}, True, 250),  # one gather, four reduce-scatters
        (3, {}, True, 150),  # 1.5 times DDP's
        (3, {}, False, 200),
        (3, {"accumulation": 2}, True, 300),
        (3, {"narrow": True}, True, 100),  # weights are gathered in two bytes
    ],
)
def test_sharded_stages_send_what_the_zero_paper_says(
    stage: int, changes: dict[str, object], by_nccl: bool, sent: int
) -> None:
    traffic = step_traffic(FIGURES, layout(Mode.ZERO, stage, **changes), by_nccl=by_nccl)
    assert traffic.sent_bytes(2) == sent * MB


def test_fsdp_is_stage_three_and_pays_the_latency_of_each_block() -> None:
    traffic = step_traffic(FIGURES, layout(Mode.FSDP, 3), by_nccl=False)
    assert traffic == Traffic(100 * MB, 200 * MB, 9 * 3)  # 8 blocks and the rest: two gathers, one sum
    assert traffic.seconds(LINK) == pytest.approx(0.2 + 0.2 + 27 * 0.001)


def test_independent_ranks_send_nothing_or_the_interval_divides() -> None:
    alone = layout(Mode.INDEPENDENT)
    assert step_traffic(FIGURES, alone, by_nccl=False) == Traffic()
    every = step_traffic(FIGURES, alone, by_nccl=False, sync_every=8)
    assert every.sent_bytes(2) == 12.5 * MB
    assert every.seconds(LINK) == pytest.approx((0.2 + 4 * 0.001) / 8)
    assert step_traffic(FIGURES, layout(Mode.DDP, ranks=1), by_nccl=False).sent_bytes(1) == 0
