"""ACT-v1's tokens: its own, or those that a run of an early version took from a named model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tokenizers", reason="tokens are made by the tokenizers package")

from core.config import RunConfig
from core.recipes.catalog import get_recipe
from core.recipes.manifest import apply_recipe
from workers.recipes.actv1.tokens import KEPT, make_tokenizer, tokens_of
from workers.recipes.hf_causal_lm.tokens import learn

pytestmark = pytest.mark.windows
TEXTS = ["alpha 1\n", "beta 25\n", "gamma 729\n"] * 20


class Texts:
    """Some text to learn from, as a run gives it."""

    def __init__(self) -> None:
        self.config = apply_recipe(RunConfig(recipe="actv1"), get_recipe("actv1"))
        self.options: Mapping[str, Any] = self.config.options

    def texts(self, limit_bytes: int) -> Iterator[str]:
        assert limit_bytes > 0
        yield from TEXTS


@pytest.mark.parametrize("kept", [False, True])
def test_a_model_s_tokenizer_that_a_run_keeps_is_used(tmp_path: Path, kept: bool) -> None:
    (tmp_path / KEPT).mkdir()  # empty where an early version could not have it
    if kept:
        learn(TEXTS, 270, tmp_path / KEPT)
    size = 270 if kept else 256
    assert make_tokenizer(Texts(), tmp_path).open().vocab_size == size
    tokens = tokens_of(tmp_path, "byte")
    assert tokens.spec.open().vocab_size == size and (tokens.end is not None) == kept
