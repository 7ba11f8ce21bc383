"""The MiniGPT recipe's parts: tokens, samples, model."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from workers.recipes.minigpt.model import MiniGPT, Shape
from workers.recipes.minigpt.text import (
    BpeTokenizer,
    ByteTokenizer,
    pieces,
    token_type,
    train_bpe,
    write_tokens,
)
from workers.recipes.minigpt.train import spread

SHAPE = Shape(vocab_size=11, seq_len=8, n_layer=2, n_head=2, n_embd=8)


@pytest.fixture
def texts(tmp_path: Path) -> list[Path]:
    one, two = tmp_path / "Größe 1.txt", tmp_path / "2.txt"
    one.write_bytes("one\nzwei ü\n".encode())
    two.write_bytes(b"\xff broken \x00\nend without newline")
    return [one, two]


def test_byte_tokens_are_the_bytes_of_all_files(texts: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "tokens.bin"
    count = write_tokens(texts, ByteTokenizer(), out)
    assert out.read_bytes() == texts[0].read_bytes() + b"\n\n" + texts[1].read_bytes() + b"\n\n"
    assert count == out.stat().st_size
    assert ByteTokenizer().decode(list("ü".encode())) == "ü"


def test_pieces_end_with_a_line_and_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.recipes.minigpt.text._PIECE_BYTES", 5)
    path = tmp_path / "a.txt"
    path.write_bytes(b"abc\ndefghijk\nl\n\nmnop")
    found = list(pieces([path]))
    assert b"".join(found) == path.read_bytes() + b"\n\n"
    assert all(piece.endswith(b"\n") for piece in found[:-2])


def test_a_bpe_is_learned_from_the_text_and_comes_back(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers", reason="BPE needs the tokenizers package")
    text = tmp_path / "text.txt"
    text.write_text("the cat sat on the mat. the hat ü\n" * 50, encoding="utf-8")
    train_bpe([text], 300, tmp_path / "tokenizer.json")
    tokenizer = BpeTokenizer(tmp_path / "tokenizer.json")
    ids = tokenizer.encode("the hat ü".encode())
    assert len(ids) < 9 and tokenizer.decode(ids) == "the hat ü" and 256 < tokenizer.vocab_size <= 300
    count = write_tokens([text], tokenizer, tmp_path / "tokens.bin")
    stored = np.fromfile(tmp_path / "tokens.bin", token_type(tokenizer.vocab_size))
    assert len(stored) == count < text.stat().st_size / 3
    assert tokenizer.decode(stored.tolist()) == text.read_text(encoding="utf-8") + "\n\n"


@pytest.mark.parametrize(("vocabulary", "size"), [(256, 1), (257, 2), (65_536, 2), (65_537, 4)])
def test_ids_take_no_more_room_than_they_need(vocabulary: int, size: int) -> None:
    assert token_type(vocabulary).itemsize == size


@pytest.mark.parametrize("samples", [1, 2, 3, 97, 256, 1_000, 2_999])
def test_spreading_is_a_permutation(samples: int) -> None:
    assert sorted(spread(np.arange(samples), samples)) == list(range(samples))


def test_spreading_takes_every_part_of_the_text_into_every_chunk() -> None:
    chunk = spread(np.arange(4_000, 4_500), 80_000)
    counts, _ = np.histogram(chunk, bins=10, range=(0, 80_000))
    assert counts.min() > 40


def test_a_token_sees_only_what_comes_before_it() -> None:
    torch.manual_seed(0)
    model = MiniGPT(SHAPE).eval()
    tokens = torch.randint(0, 11, (2, 8))
    changed = tokens.clone()
    changed[:, 5:] = (changed[:, 5:] + 1) % 11
    assert torch.equal(model(tokens)[:, :5], model(changed)[:, :5])
    assert not torch.equal(model(tokens)[:, 5:], model(changed)[:, 5:])


def test_it_begins_knowing_nothing() -> None:
    torch.manual_seed(0)
    logits = MiniGPT(SHAPE)(torch.randint(0, 11, (4, 8)))
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.randint(0, 11, (32,)))
    assert loss.item() == pytest.approx(math.log(11), rel=0.05)


def test_checkpointing_changes_no_gradient() -> None:
    gradients = []
    for switch in (False, True):
        torch.manual_seed(0)
        model = MiniGPT(Shape(11, 8, 2, 2, 8, grad_checkpointing=switch))
        model(torch.arange(8)[None]).square().mean().backward()
        gradients.append([p.grad for p in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True) if a is not None and b is not None)


def test_generation_is_repeatable_and_longer_than_the_window() -> None:
    torch.manual_seed(0)
    model = MiniGPT(SHAPE).eval()
    prompt = torch.tensor([1, 2])
    first = model.generate(prompt, 20, 0.9, torch.Generator().manual_seed(4))
    assert first.shape == (22,) and first[:2].tolist() == [1, 2]
    assert torch.equal(first, model.generate(prompt, 20, 0.9, torch.Generator().manual_seed(4)))
    assert torch.equal(
        model.generate(prompt, 5, 0.0, torch.Generator()), model.generate(prompt, 5, 0.0, torch.Generator())
    )
