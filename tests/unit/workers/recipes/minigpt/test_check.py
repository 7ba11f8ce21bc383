"""What MiniGPT refuses before a rank is started."""

from __future__ import annotations

import importlib.util

import pytest

from core.config import RunConfig
from core.recipes.catalog import get_recipe
from rankdeck.recipe import ConfigError, MissingPackageError, Request
from workers.recipes.minigpt.check import check

DEFAULTS = {spec.name: spec.default for spec in get_recipe("minigpt").fields}


def test_heads_that_do_not_share_the_width_are_refused_with_one_that_fits() -> None:
    good = DEFAULTS | {"n_embd": 64, "n_head": 4, "tokenizer": "byte"}
    assert check(Request(RunConfig(options=good))) == []
    with pytest.raises(ConfigError) as refused:
        check(Request(RunConfig(options={**good, "n_head": 5})))
    assert refused.value.field == "n_embd" and refused.value.cause == "Width must be divisible by heads (64 ÷ 5)."
    assert refused.value.next_step == "Try 65, or 4 heads."


def test_a_tokenizer_that_is_not_installed_is_named_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingPackageError) as refused:
        check(Request(RunConfig(options=DEFAULTS | {"n_embd": 64, "n_head": 4, "tokenizer": "bpe"})))
    assert refused.value.packages == ("tokenizers",) and "[bpe]" in refused.value.next_step
