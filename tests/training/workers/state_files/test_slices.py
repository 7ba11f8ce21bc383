"""Tensors that were written in pieces come back whole, or are refused."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
import torch

from core.errors import StateFileError
from workers.state_files import safetensors_files
from workers.state_files.saved_state import SavedState
from workers.state_files.slices import TensorSlice, bare, describe, join


def cut(tensor: torch.Tensor, *at: int) -> list[TensorSlice]:
    edges = [0, *at, tensor.numel()]
    flat = tensor.reshape(-1)
    return [TensorSlice(flat[a:b], a, tuple(tensor.shape)) for a, b in itertools.pairwise(edges)]


@pytest.mark.parametrize("at", [(), (5,), (0, 7), (3, 3, 24), (1, 2, 23)])
def test_pieces_make_the_whole_in_any_order(at: tuple[int, ...]) -> None:
    tensor = torch.randn(4, 6)
    assert torch.equal(join("w", reversed(cut(tensor, *at))), tensor)


def test_a_missing_piece_is_named() -> None:
    with pytest.raises(StateFileError, match=r"pieces of w do not make a whole of shape \[4, 6\]"):
        join("w", cut(torch.randn(4, 6), 5, 11)[::2])


def test_pieces_of_different_tensors_do_not_fit() -> None:
    with pytest.raises(StateFileError, match="do not make a whole"):
        join("w", [TensorSlice(torch.zeros(12), 0, (4, 6)), TensorSlice(torch.zeros(12), 12, (6, 4))])


def test_a_state_in_shards_is_read_as_one(tmp_path: Path) -> None:
    """Two ranks wrote a piece of one weight each, and one of them another weight whole."""
    weight, bias, moment = torch.randn(5, 3), torch.randn(3), torch.randn(5, 3)
    for rank, (part, share) in enumerate(zip(cut(weight, 6), cut(moment, 9), strict=True)):
        weights = {"w": part, **({"b": bias} if rank == 1 else {})}
        safetensors_files.write(
            tmp_path / f"weights_shard{rank}.safetensors", bare(weights), {"pieces": describe(weights)}
        )
        state = {"0.exp_avg": share}
        values = {"pieces": describe(state), "scalars": {"0.step": 3}, "groups": [{"lr": 1.0, "params": [0]}]}
        safetensors_files.write(
            tmp_path / f"optimizer_shard{rank}.safetensors", bare(state), {**values, "kind": "AdamW"}
        )
    saved = SavedState(tmp_path)
    assert saved.weight_names() == ["b", "w"]
    assert torch.equal(saved.weight("w"), weight) and torch.equal(saved.weight("b"), bias)
    assert saved.optimizer_numbers() == [0]
    state_again = saved.optimizer_state(0)
    assert torch.equal(state_again["exp_avg"], moment) and state_again["step"] == 3


def test_a_shard_that_is_gone_is_refused(tmp_path: Path) -> None:
    pieces = cut(torch.randn(5, 3), 6)
    for rank, piece in enumerate(pieces):
        safetensors_files.write(
            tmp_path / f"weights_shard{rank}.safetensors", {"w": piece.values}, {"pieces": describe({"w": piece})}
        )
    safetensors_files.write(tmp_path / "optimizer.safetensors", {}, {"scalars": {}, "groups": []})
    (tmp_path / "manifest.json").write_text(json.dumps({"files": []}), encoding="utf-8")
    (tmp_path / "weights_shard1.safetensors").unlink()
    with pytest.raises(StateFileError, match="do not make a whole"):
        SavedState(tmp_path).weight("w")
