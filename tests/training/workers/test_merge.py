"""What becomes of independent ranks' copies."""

from __future__ import annotations

import math

import pytest
import torch

from workers.training.independent.model_merge import AVERAGE, average, choose

NAMES = ["rank 0", "rank 1", AVERAGE]


def test_the_average_keeps_dtypes_and_leaves_integers_alone() -> None:
    one = {"w": torch.tensor([1.0, 2.0], dtype=torch.bfloat16), "n": torch.tensor(3), "f": torch.tensor([True])}
    two = {"w": torch.tensor([3.0, 2.0], dtype=torch.bfloat16), "n": torch.tensor(8), "f": torch.tensor([False])}
    merged = average([one, two])
    assert merged["w"].dtype == torch.bfloat16 and merged["w"].tolist() == [2.0, 2.0]
    assert int(merged["n"]) == 3 and merged["n"].dtype == torch.int64 and bool(merged["f"])


def test_the_average_is_taken_in_double_precision() -> None:
    ranks = [{"w": torch.tensor([16777216.0])}, {"w": torch.tensor([1.0])}, {"w": torch.tensor([1.0])}]
    assert average(ranks)["w"].item() == torch.tensor(16777218 / 3).item()


@pytest.mark.parametrize(
    ("policy", "losses", "chosen"),
    [
        ("best", {"rank 0": 2.0, "rank 1": 1.5, AVERAGE: 1.9}, "rank 1"),
        ("best", {"rank 0": 2.0, "rank 1": 1.5, AVERAGE: 1.2}, AVERAGE),
        ("best", {"rank 0": 2.0, "rank 1": math.nan, AVERAGE: math.inf}, "rank 0"),
        ("average", {"rank 0": 2.0, "rank 1": 1.5, AVERAGE: 1.9}, "rank 1"),
        ("average", {"rank 0": 2.0, "rank 1": 1.5, AVERAGE: 1.2}, AVERAGE),
        ("average", {}, AVERAGE),
        ("none", {"rank 0": 2.0, "rank 1": 1.5, AVERAGE: 1.2}, "rank 1"),
        ("best", {}, "rank 0"),
        ("none", {"rank 0": math.nan, "rank 1": math.nan}, "rank 0"),
    ],
)
def test_what_is_exported_is_what_was_measured_best(policy: str, losses: dict[str, float], chosen: str) -> None:
    assert choose(losses, NAMES, policy) == chosen
