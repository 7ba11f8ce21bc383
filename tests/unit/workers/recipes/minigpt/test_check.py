"""What MiniGPT refuses before a rank is started."""

from __future__ import annotations

import importlib.util

import pytest

from core.config import RunConfig
from core.recipes.catalog import get_recipe
from rankdeck.recipe import ConfigError, MissingPackageError, Request
from workers.recipes.minigpt.check import check, check_width

pytestmark = pytest.mark.windows
DEFAULTS = {spec.name: spec.default for spec in get_recipe("minigpt").fields}


def test_heads_that_do_not_share_the_width_are_refused_with_one_that_fits() -> None:
    good = DEFAULTS | {"n_embd": 64, "n_head": 4, "tokenizer": "byte"}
    assert check(Request(RunConfig(options=good))) == []
    with pytest.raises(ConfigError) as refused:
        check(Request(RunConfig(options={**good, "n_head": 5})))
    assert refused.value.field == "n_embd" and "64" in refused.value.cause and "65" in refused.value.next_step


def test_a_tokenizer_that_is_not_installed_is_named_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingPackageError) as refused:
        check(Request(RunConfig(options=DEFAULTS | {"n_embd": 64, "n_head": 4, "tokenizer": "bpe"})))
    assert refused.value.packages == ("tokenizers",) and "rankdeck[bpe]" in refused.value.next_step


@pytest.mark.parametrize(("width", "heads", "better"), [(3, 8, 8), (65, 4, 64), (67, 4, 68), (128, 3, 129)])
def test_the_nearest_width_is_named(width: int, heads: int, better: int) -> None:
    with pytest.raises(ConfigError) as refused:
        check_width(width, heads)
    assert f"width {better}," in refused.value.next_step
    check_width(better, heads)
