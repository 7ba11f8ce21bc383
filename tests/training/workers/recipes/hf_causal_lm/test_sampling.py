"""A sampled text is the same whether the model keeps its past or reads the whole text for each token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="samples for real")
pytest.importorskip("transformers", reason="the recipe's models are those of transformers")

import torch

from tests.training.workers.recipes.hf_causal_lm.made import make_model
from workers.decoding.written_tokens import WeightsNotFiniteError
from workers.recipes.hf_causal_lm.sampling import Sampler

pytestmark = pytest.mark.windows


class Numbers:
    """A tokenizer whose text is its numbers."""

    vocab_size = 290

    def encode(self, texts: list[bytes]) -> list[np.ndarray]:
        raise NotImplementedError

    def decode(self, ids: list[int]) -> str:
        return " ".join(map(str, ids))


def sampler(temperature: float, keeps_past: bool, window: int = 32) -> Sampler:
    encoder: Any = Numbers()
    place = torch.device("cpu")
    return Sampler(encoder, [5, 6, 7], 40, window, temperature, 1, None, place, keeps_past=keeps_past)


@pytest.mark.parametrize("temperature", [0.0, 0.9])
@pytest.mark.parametrize("architecture", ["gpt2", "llama", "qwen3"])
def test_what_is_kept_changes_nothing(tmp_path: Path, architecture: str, temperature: float) -> None:
    """After 32 tokens the window moves."""
    model: Any = make_model(tmp_path, architecture).eval()
    lengths: list[int] = []
    model.register_forward_pre_hook(
        lambda _module, _args, given: lengths.append(given["input_ids"].shape[1]), with_kwargs=True
    )
    with torch.no_grad():
        whole = sampler(temperature, keeps_past=False)(model)
        assert max(lengths) == 32 and lengths[:3] == [3, 4, 5]
        lengths.clear()
        assert sampler(temperature, keeps_past=True)(model) == whole
    assert lengths[:30] == [3] + [1] * 29 and set(lengths[30:]) == {32}
    assert temperature == 0 or len(set(whole.split())) > 3


def test_weights_that_are_not_finite_end_it(tmp_path: Path) -> None:
    model: Any = make_model(tmp_path).eval()
    next(model.parameters()).data.fill_(float("nan"))
    with torch.no_grad(), pytest.raises(WeightsNotFiniteError):
        sampler(0.9, keeps_past=True)(model)
