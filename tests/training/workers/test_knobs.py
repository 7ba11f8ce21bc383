"""DDP's arguments and the collective timeout, on real processes: every way that gradients travel heeds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.helpers.deepspeed_here import needs_deepspeed
from tests.helpers.rank_processes import run_rank_processes

torch = pytest.importorskip("torch", reason="trains for real")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def two(folder: Path, what: str, way: str) -> list[dict[str, Any]]:
    return run_rank_processes("tests.training.workers.knob_rank", 2, folder, what, way)


@pytest.mark.parametrize("way", ["plain", "shared", pytest.param("deepspeed", marks=needs_deepspeed)])
def test_a_rank_that_says_nothing_is_waited_for_as_long_as_was_asked(tmp_path: Path, way: str) -> None:
    waiting, _ = two(tmp_path, "silent", way)  # the other rank is silent for 20 s, and 300 s is the default
    assert 1.5 < waiting["waited_s"] < 15.0
    assert waiting["title"] == "Another rank does not answer"


@pytest.mark.parametrize("exchange", ["plain", "shared", "fp16", "powersgd"])
def test_parameters_without_a_gradient_train_when_they_are_looked_for(tmp_path: Path, exchange: str) -> None:
    one, other = two(tmp_path, "unused", f"{exchange}-find")
    assert one["weights"] == other["weights"] and one["unused"] and len(one["losses"]) == 6


@pytest.mark.parametrize("exchange", ["plain", "shared"])
def test_without_looking_for_them_it_is_said_which_setting_helps(tmp_path: Path, exchange: str) -> None:
    for rank in two(tmp_path, "unused", f"{exchange}-"):
        assert rank["title"] == "Some parameters got no gradient"
        assert "--find-unused-parameters" in rank["next_step"]


@pytest.mark.parametrize("setting", ["find", "static"])
def test_both_ways_of_exchange_give_the_same_weights_also_with_a_static_graph(tmp_path: Path, setting: str) -> None:
    weights = set()
    for exchange in ("plain", "shared"):
        folder = tmp_path / exchange
        folder.mkdir()
        weights |= {rank["weights"] for rank in two(folder, "unused", f"{exchange}-{setting}")}
    assert len(weights) == 1


def test_buffers_are_copied_from_the_first_rank_unless_told_otherwise(tmp_path: Path) -> None:
    """In its last forward pass each rank adds its own batch to the running mean, so even copies differ a little."""
    buffers = {}
    for setting in ("find", "own"):
        folder = tmp_path / setting
        folder.mkdir()
        buffers[setting] = [rank["buffer"] for rank in two(folder, "unused", f"shared-{setting}")]
    assert buffers["find"][0] == buffers["own"][0], "the first rank's are its own either way"
    assert buffers["find"][1] != buffers["own"][1]
