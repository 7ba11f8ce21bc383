"""A model folder as far as it is looked at without torch."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

from core.recipes.catalog import get_recipe
from workers.recipes.hf_causal_lm.options import Options

LLAMA = {"model_type": "llama", "vocab_size": 300, "max_position_embeddings": 64}
SHAPES = {"model.embed_tokens.weight": [300, 8], "model.layers.0.self_attn.q_proj.weight": [8, 8], "norm.weight": [8]}


def write_weights(path: Path, shapes: dict[str, list[int]]) -> None:
    """A safetensors file: the header's length, the header, the numbers."""
    header, end = {}, 0
    for name, shape in shapes.items():
        size = 4
        for dimension in shape:
            size *= dimension
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(end))


def write_tokenizer(path: Path, size: int) -> None:
    vocabulary = {f"t{number}": number for number in range(size)}
    path.write_text(json.dumps({"model": {"vocab": vocabulary}, "added_tokens": []}), encoding="utf-8")


def write_model(folder: Path) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")
    write_weights(folder / "model.safetensors", SHAPES)
    write_tokenizer(folder / "tokenizer.json", 300)
    return folder


def only_pickle(folder: Path) -> None:
    """Makes the weights such as could run any code."""
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def options(**changes: Any) -> Options:
    defaults = {spec.name: spec.default for spec in get_recipe("hf_causal_lm").fields}
    return Options(**(defaults | changes))
