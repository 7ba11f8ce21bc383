"""Whole weights out of shards: byte for byte the file that one rank with all of them would have written."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from core.checkpoints.full_weights import export_weights
from core.errors import StateFileError

torch = pytest.importorskip("torch", reason="makes real weights")
tensor_files = pytest.importorskip("workers.state_files.safetensors_files")
pieces = pytest.importorskip("workers.state_files.slices")


def weights() -> dict[str, Any]:
    """Names that sort in another way than they are made, a tie, several formats, an empty tensor, a scalar."""
    torch.manual_seed(1)
    embedding = torch.randn(7, 3)
    return {
        "tokens.weight": embedding,
        "head.weight": embedding,
        "späce": torch.randn(5, 2, 2).to(torch.bfloat16),
        "count": torch.tensor(12),
        "none": torch.zeros(0, 4),
        "b": torch.randn(2),
    }


def write_shards(folder: Path, world: int, tensors: Mapping[str, Any], *, overlap: int = 0) -> list[Path]:
    """Rows dealt out as FSDP2 does (the last ranks may get none); rank 0 also writes what has no rows."""
    paths = []
    for rank in range(world):
        own: dict[str, Any] = {}
        for name, tensor in tensors.items():
            if tensor.dim() == 0:
                if rank == 0:
                    own[name] = tensor
                continue
            each = -(-tensor.shape[0] // world)
            first = max(0, min(rank * each, tensor.shape[0]) - overlap)
            rows = tensor[first : min((rank + 1) * each, tensor.shape[0])]
            start = first * (tensor[0].numel() if len(tensor) else 0)
            own[name] = pieces.TensorSlice(rows.reshape(-1), start, tuple(tensor.shape))
        path = folder / f"weights_shard{rank}.safetensors"
        tensor_files.write(path, pieces.bare(own), {"pieces": pieces.describe(own)})
        paths.append(path)
    return paths


@pytest.mark.parametrize("world", [2, 3, 4, 9])
def test_any_number_of_shards_makes_the_same_file(tmp_path: Path, world: int) -> None:
    tensor_files.write(tmp_path / "whole.safetensors", weights())
    target = tmp_path / "model.safetensors"
    export_weights(write_shards(tmp_path, world, weights()), target)
    assert target.read_bytes() == (tmp_path / "whole.safetensors").read_bytes()
    read, _ = tensor_files.read(target)
    assert all(torch.equal(read[name], tensor) for name, tensor in weights().items())
    assert read["tokens.weight"] is read["head.weight"]
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".safetensors"] * (world + 2), "nothing left behind"


def test_one_file_is_copied_and_overlaps_are_taken_once(tmp_path: Path) -> None:
    tensor_files.write(tmp_path / "whole.safetensors", weights())
    whole = (tmp_path / "whole.safetensors").read_bytes()
    export_weights([tmp_path / "whole.safetensors"], tmp_path / "copy.safetensors")
    assert (tmp_path / "copy.safetensors").read_bytes() == whole
    export_weights(write_shards(tmp_path, 3, weights(), overlap=1), tmp_path / "model.safetensors")
    assert (tmp_path / "model.safetensors").read_bytes() == whole


def test_what_is_no_whole_is_refused_and_replaces_nothing(tmp_path: Path) -> None:
    target = tmp_path / "model.safetensors"
    target.write_bytes(b"before")
    shards = write_shards(tmp_path, 4, weights())
    with pytest.raises(StateFileError, match="do not make a whole"):
        export_weights([shards[0], shards[2], shards[3]], target)
    content = shards[1].read_bytes()
    for damaged in (
        b"",
        content[:20],
        content[:-4],
        struct.pack("<Q", 1 << 60) + content[8:],
        b"\x02" + bytes(7) + b"[]",
    ):
        shards[1].write_bytes(damaged)
        with pytest.raises(StateFileError, match=r"weights_shard1|do not make a whole"):
            export_weights(shards, target)
    assert target.read_bytes() == b"before"
    assert json.loads(content[8 : 8 + struct.unpack("<Q", content[:8])[0]])["__metadata__"]["format"] == "pt"
