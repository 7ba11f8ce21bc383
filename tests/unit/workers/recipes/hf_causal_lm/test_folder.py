"""A model folder looked at without torch: its sizes, and what is wrong with a damaged one."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from core.errors import ConfigError
from tests.unit.workers.recipes.hf_causal_lm.model_folder import LLAMA, write_model
from workers.recipes.hf_causal_lm.folder import (
    CONFIG,
    INDEX,
    ModelFolder,
    check_tokenizer_fits,
    largest_token,
    open_folder,
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "Mödell mit Raum")


def test_shapes_are_those_of_the_weights(model: Path) -> None:
    found = open_folder(model)
    assert (found.embedding_rows, found.longest, found.model_type) == (300, 64, "llama")
    assert found.modules == {"model.embed_tokens", "model.layers.0.self_attn.q_proj"}


def head(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


@pytest.mark.parametrize(
    "weights",
    [
        b"",
        b"PK\x03\x04",
        head("[]"),
        head("{"),
        head('{"a": 5}'),
        head('{"a": {"data_offsets": [0, 0]}}'),
        head('{"a": {"data_offsets": [0, 0], "shape": 5}}'),
        head('{"a": {"data_offsets": [0, 4], "shape": [1]}}'),
        struct.pack("<Q", 1 << 60),
    ],
)
def test_weights_that_are_no_whole_file_are_refused(model: Path, weights: bytes) -> None:
    (model / "model.safetensors").write_bytes(weights)
    with pytest.raises(ConfigError, match=r"model\.safetensors is not a complete safetensors file") as caught:
        open_folder(model)
    assert caught.value.title == "The model is damaged"


@pytest.mark.parametrize(
    ("index", "cause"),
    [
        ("{", "cannot be read"),
        ("[]", "cannot be read"),
        ("{}", "cannot be read"),
        ('{"weight_map": ["a"]}', "cannot be read"),
        ('{"weight_map": {"a": 5, "b": "x"}}', "2 of 2 files of weights are missing"),
    ],
)
def test_an_index_that_names_no_files_is_refused(model: Path, index: str, cause: str) -> None:
    (model / "model.safetensors").unlink()
    (model / INDEX).write_text(index, encoding="utf-8")
    with pytest.raises(ConfigError, match=cause) as caught:
        open_folder(model)
    assert caught.value.title == "The model is damaged"


def test_shards_are_read_together_and_one_whole_file_wins_over_an_index(model: Path) -> None:
    whole = open_folder(model)
    (model / INDEX).write_text("{", encoding="utf-8")
    assert open_folder(model) == whole
    (model / "model.safetensors").rename(model / "a.safetensors")
    (model / "b.safetensors").write_bytes(
        head('{"__metadata__": {}, "b": {"dtype": "F32", "data_offsets": [0, 0], "shape": [0]}}')
    )
    names = {"x": "a.safetensors", "y": "b.safetensors", "z": "a.safetensors"}
    (model / INDEX).write_text(json.dumps({"weight_map": names}), encoding="utf-8")
    assert open_folder(model).shapes == {**whole.shapes, "b": (0,)}


@pytest.mark.parametrize(("text", "cause"), [("[1]", "is not a table of settings"), ("{", "cannot be read")])
def test_a_config_that_is_none_is_refused(model: Path, text: str, cause: str) -> None:
    (model / CONFIG).write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=cause):
        open_folder(model)


@pytest.mark.parametrize(
    ("config", "shapes", "rows", "longest"),
    [
        ({"vocab_size": 7}, {"model.embed_tokens.weight": (9, 4)}, 9, None),
        ({"vocab_size": 7}, {"model.embed_tokens.weight": (9,), "lm_head.weight": (8, 4)}, 7, None),
        ({"text_config": {"vocab_size": 7, "max_position_embeddings": 5}}, {}, 7, 5),
        ({"n_positions": 3, "seq_length": 4}, {"transformer.wte.weight": (2, 4)}, 2, 3),
        ({"max_position_embeddings": -1, "max_seq_len": 6}, {}, None, 6),
        ({"vocab_size": "many", "text_config": 5}, {}, None, None),
    ],
)
def test_what_a_folder_says_of_its_model(
    config: dict[str, Any], shapes: dict[str, tuple[int, ...]], rows: int | None, longest: int | None
) -> None:
    found = ModelFolder(Path(), config, shapes)
    assert (found.embedding_rows, found.longest, found.model_type) == (rows, longest, "")


@pytest.mark.parametrize(
    ("document", "highest"),
    [
        ({"model": {"vocab": {"a": 0, "b": 5}}}, 5),
        ({"model": {"vocab": [["a", -1.0], ["b", -2.0]]}}, 1),
        ({"model": {"vocab": {"a": 0}}, "added_tokens": [{"id": 9}]}, 9),
        ({"model": {"vocab": {}}, "added_tokens": None}, None),
        ({"model": {}}, None),
        ([], None),
    ],
)
def test_the_highest_token_of_a_tokenizer(tmp_path: Path, document: Any, highest: int | None) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    if highest is not None:
        assert largest_token(path) == highest
        return
    with pytest.raises(ConfigError, match="cannot be read as a tokenizer"):
        largest_token(path)


def test_a_tokenizer_fits_where_its_highest_token_has_a_row(model: Path) -> None:
    found = open_folder(model)
    check_tokenizer_fits(model / "tokenizer.json", found)
    smaller = ModelFolder(model, LLAMA, {"wte.weight": (299, 8)})
    with pytest.raises(ConfigError, match=r"number 299.*299 rows"):
        check_tokenizer_fits(model / "tokenizer.json", smaller)
    check_tokenizer_fits(model / "tokenizer.json", ModelFolder(model, {}, {}))
