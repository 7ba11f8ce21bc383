"""Documents that share a sample know nothing of each other, and the loss is what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="trains for real")

import torch

from tests.training.workers.recipes.hf_causal_lm.made import make_model, needs_transformers
from workers.recipes.hf_causal_lm.samples import IGNORED, Packing, keeps_documents_apart, loss, positions

pytestmark = [pytest.mark.windows, needs_transformers]

ENDS = np.array([7, 8, 20, 21, 50, 200])
TOKENS = np.random.default_rng(0).integers(1, 300, 200)
LENGTH = 16


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize(("architecture", "key_heads"), [("gpt2", 0), ("llama", 1), ("qwen3", 2)])
def test_a_packed_document_has_the_logits_it_has_alone(
    tmp_path: Path, architecture: str, key_heads: int, attention: str
) -> None:
    model: Any = make_model(tmp_path, architecture, n_kv_head=key_heads).eval()
    model.set_attn_implementation(attention)
    batch = Packing(TOKENS, LENGTH, ENDS).batch(np.arange(3))
    with torch.no_grad():
        packed = model(input_ids=batch["input_ids"], position_ids=batch["position_ids"]).logits
        joined = model(input_ids=batch["input_ids"]).logits
        for row, first, last in [(0, 0, 7), (0, 7, 8), (0, 8, 16), (1, 0, 4), (1, 4, 5), (1, 5, 16), (2, 0, 16)]:
            alone = model(input_ids=batch["input_ids"][row : row + 1, first:last]).logits[0]
            assert torch.allclose(packed[row, first:last], alone, atol=1e-5), (row, first)
            if first:
                assert not torch.allclose(joined[row, first:last], alone, atol=1e-2), "joined, it would see the others"


def test_positions_begin_anew_with_each_document_and_labels_stay_within() -> None:
    batch = Packing(TOKENS, LENGTH, ENDS).batch(np.arange(2))
    assert batch["position_ids"][0].tolist() == [0, 1, 2, 3, 4, 5, 6, 0, *range(8)]
    assert batch["position_ids"][1].tolist() == [0, 1, 2, 3, 0, *range(11)]
    assert batch["input_ids"][1].tolist() == TOKENS[16:32].tolist()
    expected = TOKENS[1:17].copy()
    expected[[6, 7]] = IGNORED  # the last token of the first document, and the only one of the second
    assert batch["labels"][0].tolist() == expected.tolist()


def test_a_token_that_opens_a_document_belongs_to_it() -> None:
    """With one such token before each end's place, everything lies one token earlier."""
    batch = Packing(TOKENS, LENGTH, ENDS, opening=1).batch(np.arange(1))
    assert batch["position_ids"][0].tolist() == [0, 1, 2, 3, 4, 5, 0, *range(9)]


def test_joined_documents_are_one_text() -> None:
    batch = Packing(TOKENS, LENGTH).batch(np.arange(2), 3)
    assert set(batch) == {"input_ids", "labels"}
    assert batch["labels"][1].tolist() == TOKENS[20:36].tolist()


def test_positions_by_hand() -> None:
    rows = np.array([[4, 4, 5, 7, 7, 7], [1, 1, 1, 1, 1, 1], [1, 2, 3, 4, 5, 6]])
    assert positions(rows).tolist() == [[0, 1, 0, 0, 1, 2], [0, 1, 2, 3, 4, 5], [0] * 6]


def test_the_loss_is_that_of_torch_and_does_not_depend_on_how_a_batch_is_cut(tmp_path: Path) -> None:
    model = make_model(tmp_path, "llama")
    data = Packing(TOKENS, LENGTH, ENDS)
    batch = data.batch(np.arange(4))
    logits = model(input_ids=batch["input_ids"], position_ids=batch["position_ids"]).logits
    by_row = [
        torch.nn.functional.cross_entropy(row, labels) for row, labels in zip(logits, batch["labels"], strict=True)
    ]
    assert loss(model, batch).item() == pytest.approx(sum(by_row).item() / 4, rel=1e-6)
    halves = [loss(model, data.batch(part)).item() for part in (np.arange(2), np.arange(2, 4))]
    assert loss(model, batch).item() == pytest.approx(sum(halves) / 2, rel=1e-6)


def test_a_sample_of_nothing_but_single_tokens_has_no_loss(tmp_path: Path) -> None:
    batch = Packing(TOKENS, 4, np.arange(1, 201)).batch(np.arange(1))
    assert set(batch["labels"].flatten().tolist()) == {IGNORED}
    assert loss(make_model(tmp_path), batch).item() == 0.0


def test_an_architecture_that_cannot_keep_documents_apart_is_found_out(tmp_path: Path) -> None:
    from transformers import BloomConfig, BloomForCausalLM

    assert keeps_documents_apart(make_model(tmp_path, "gpt2"))
    torch.manual_seed(0)
    assert not keeps_documents_apart(BloomForCausalLM(BloomConfig(vocab_size=50, hidden_size=16, n_layer=1, n_head=2)))
