"""A sampled text is the same whether the model keeps its past or reads the whole text for each token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="samples for real")

import torch

from tests.training.workers.recipes.hf_causal_lm.made import make_model, needs_transformers
from workers.decoding import WeightsNotFiniteError, write_tokens
from workers.recipes.hf_causal_lm.model import writer

pytestmark = [pytest.mark.windows, needs_transformers]


def sampled(model: Any, temperature: float, *, keeps_past: bool) -> list[int]:
    next_logits = writer(model, 32, 290, keeps_past=keeps_past)
    generator = torch.Generator().manual_seed(1)
    return write_tokens(next_logits, torch.tensor([5, 6, 7]), 40, temperature, generator).tolist()


@pytest.mark.parametrize("temperature", [0.0, 0.9])
@pytest.mark.parametrize("architecture", ["gpt2", "llama", "qwen3"])
def test_what_is_kept_changes_nothing(tmp_path: Path, architecture: str, temperature: float) -> None:
    model: Any = make_model(tmp_path, architecture).eval()
    lengths: list[int] = []
    model.register_forward_pre_hook(
        lambda _module, _args, given: lengths.append(given["input_ids"].shape[1]), with_kwargs=True
    )
    whole = sampled(model, temperature, keeps_past=False)
    assert max(lengths) == 32 and lengths[:3] == [3, 4, 5]
    lengths.clear()
    assert sampled(model, temperature, keeps_past=True) == whole
    assert lengths[:30] == [3] + [1] * 29 and set(lengths[30:]) == {32}
    assert temperature == 0 or len(set(whole[3:])) > 3


def test_weights_that_are_not_finite_end_it(tmp_path: Path) -> None:
    model: Any = make_model(tmp_path).eval()
    next(model.parameters()).data.fill_(float("nan"))
    with pytest.raises(WeightsNotFiniteError):
        sampled(model, 0.9, keeps_past=True)
