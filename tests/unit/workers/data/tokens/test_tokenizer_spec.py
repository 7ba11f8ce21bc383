"""A tokenizer in a form that other processes can be told, and the ids that it gives."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from workers.data.tokens import tokenizer_spec
from workers.data.tokens.byte_or_bpe import train_bpe
from workers.data.tokens.tokenizer_spec import TokenizerSpec, token_type

needs_tokenizers = pytest.mark.skipif(importlib.util.find_spec("tokenizers") is None, reason="BPE needs tokenizers")
TEXT = "the cat sat on the mat\nthe hat ü\n" * 40


@pytest.mark.parametrize(("vocabulary", "size"), [(256, 1), (257, 2), (65_536, 2), (65_537, 4)])
def test_ids_take_no_more_room_than_they_need(vocabulary: int, size: int) -> None:
    assert token_type(vocabulary).itemsize == size


def test_bytes_are_their_own_ids_and_come_back() -> None:
    encoder = TokenizerSpec().open()
    encoded, empty = encoder.encode(["größe\n".encode(), b""])
    assert encoded.tolist() == list("größe\n".encode()) and len(empty) == 0
    assert encoder.decode(encoded.tolist()) == "größe\n"
    assert encoder.decode([0xC3, 0x61]) == "\ufffda", "half a letter is shown as what it is"
    assert (encoder.vocab_size, encoder.separator.tolist()) == (256, [10, 10])
    assert TokenizerSpec(separator_id=7).open().separator.tolist() == [7]


def test_the_key_changes_with_whatever_the_tokens_depend_on(tmp_path: Path) -> None:
    path, same = tmp_path / "a.json", tmp_path / "b.json"
    path.write_text("{}", encoding="utf-8")
    same.write_text("{}", encoding="utf-8")
    spec = TokenizerSpec("tokenizers", str(path))
    assert spec.key == TokenizerSpec("tokenizers", str(same)).key, "where the file lies makes no difference"
    others = [
        TokenizerSpec(),
        TokenizerSpec(separator=""),
        TokenizerSpec("tokenizers", str(path), separator_id=10),
        TokenizerSpec("tokenizers", str(path), separator="10"),
    ]
    assert len({spec.key, *(other.key for other in others)}) == 5
    before = spec.key
    path.write_text("{ }", encoding="utf-8")
    assert spec.key != before


@pytest.fixture
def learned(tmp_path: Path) -> Path:
    path = tmp_path / "tokenizer.json"
    train_bpe([TEXT], 300, path)
    return path


@needs_tokenizers
def test_a_long_text_is_encoded_in_parts_with_the_same_ids(learned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [TEXT.encode(), b"", b"a line without an end" * 20, TEXT[:70].encode()]
    encoder = TokenizerSpec("tokenizers", str(learned)).open()
    whole = encoder.encode(pieces)
    monkeypatch.setattr(tokenizer_spec, "_PART_CHARS", 100)
    given: list[str] = []
    cut = encoder._parts  # type: ignore[attr-defined]
    monkeypatch.setattr(encoder, "_parts", lambda text: [given.append(part) or part for part in cut(text)])  # type: ignore[func-returns-value]
    parts = encoder.encode(pieces)
    assert [ids.tolist() for ids in parts] == [ids.tolist() for ids in whole]
    assert len(given) > 10 and max(map(len, given)) < 100 + 420  # a line without an end is one part
    assert encoder.decode(parts[0].tolist()) == TEXT


@needs_tokenizers
def test_a_file_that_says_to_cut_and_pad_is_not_obeyed(learned: Path) -> None:
    document = json.loads(learned.read_text(encoding="utf-8"))
    document["truncation"] = {"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}
    learned.write_text(json.dumps(document), encoding="utf-8")
    (ids,) = TokenizerSpec("tokenizers", str(learned)).open().encode([TEXT.encode()])
    assert len(ids) > 3


@needs_tokenizers
@pytest.mark.parametrize(("changes", "separator"), [({"separator": ""}, []), ({"separator_id": 299}, [299])])
def test_what_stands_between_documents(learned: Path, changes: dict[str, Any], separator: list[int]) -> None:
    assert TokenizerSpec("tokenizers", str(learned), **changes).open().separator.tolist() == separator


@pytest.mark.parametrize(
    ("document", "is_byte_level"),
    [
        ({"pre_tokenizer": {"type": "ByteLevel"}, "normalizer": None}, True),
        ({"pre_tokenizer": {"type": "ByteLevel"}, "normalizer": {"type": "NFC"}}, True),
        ({"pre_tokenizer": {"type": "ByteLevel"}, "normalizer": {"type": "Lowercase"}}, False),
        ({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split"}, {"type": "ByteLevel"}]}}, True),
        ({"pre_tokenizer": {"type": "Metaspace"}}, False),
        ({"pre_tokenizer": None}, False),
    ],
)
def test_only_byte_level_texts_may_be_cut(document: dict[str, Any], is_byte_level: bool) -> None:
    assert tokenizer_spec._is_byte_level(document) is is_byte_level
