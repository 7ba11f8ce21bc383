"""Live bytes of passes, and their extension to larger micro-batches."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from workers.measure.figures import optimizer_ratio
from workers.measure.live_bytes import LiveBytes, lines_through, peak_of
from workers.optim.optimizer import Optimization

KIB = 256  # numbers of four bytes


def test_what_is_made_counts_until_it_is_gone() -> None:
    there = torch.zeros(KIB)
    live = LiveBytes()
    with live:
        one = there + 1
        two = one + 1
        two.add_(1)  # returns what was there
        seen = two.view(16, 16)
        del one
        three = there + 2
    assert live.timeline == [1024, 2048, 2048, 2048, 2048]
    del seen, two, three


def test_lines_give_the_peak_of_a_larger_micro_batch() -> None:
    torch.manual_seed(0)
    layers: list[nn.Module] = [module for _ in range(3) for module in (nn.Linear(32, 32), nn.GELU())]
    model = nn.Sequential(*layers)

    def timeline(samples: int) -> list[int]:
        model.zero_grad(set_to_none=True)
        inputs = torch.ones(samples, 64, 32)
        live = LiveBytes()
        with live:
            model(inputs).square().mean().backward()
        return live.timeline

    timeline(2)
    lines = lines_through((2, 3), (timeline(2), timeline(3)))
    for samples in (4, 16, 64):
        assert peak_of(lines, samples) == pytest.approx(max(timeline(samples)), rel=0.01)


def test_passes_of_different_operations_are_compared_by_their_peaks() -> None:
    assert lines_through((2, 3), ([10, 30], [10, 20, 40])) == [(10, 10)]
    assert lines_through((2, 3), ([], [])) == []


@pytest.mark.parametrize(
    ("optimization", "ratio"),
    [
        (Optimization(), 2.0),
        (Optimization(kind=torch.optim.SGD), 0.0),
        (Optimization(kind=torch.optim.SGD, options={"momentum": 0.9}), 1.0),
    ],
)
def test_the_optimizers_state_for_each_byte(optimization: Optimization, ratio: float) -> None:
    assert optimizer_ratio(optimization) == ratio
