"""Extras of an environment: who needs them, and DeepSpeed where it has wheels."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from core.environments.extras import DEEPSPEED_NOTE, OFFERED, list_extras
from core.environments.wanted import wanted_for
from core.errors import PreflightError
from core.machine.packages import find_extras
from core.recipes.catalog import find_recipes


def test_each_extra_names_the_recipes_that_need_it() -> None:
    extras = {extra.name: extra for extra in list_extras(find_recipes(), find_extras(), "win32", (3, 12))}
    assert tuple(extras) == OFFERED
    assert "Hugging Face causal LM" in extras["hf"].note and "PPO" in extras["rl"].note
    assert extras["bpe"].note == ""
    assert not any(extra.unavailable for extra in extras.values())
    assert extras["deepspeed"].note == DEEPSPEED_NOTE and "default is PyTorch's own engine" in DEEPSPEED_NOTE


@pytest.mark.skipif(sys.platform == "win32" and sys.version_info < (3, 13), reason="this Python has its wheels")
def test_where_it_has_none_it_is_refused_with_the_reason() -> None:
    with pytest.raises(PreflightError, match="DeepSpeed cannot be added here") as refused:
        wanted_for(Path("x"), "cpu", ["deepspeed"], None, None, None)
    assert "PyTorch's own engine" in refused.value.next_step


@pytest.mark.skipif(sys.platform != "win32" or sys.version_info >= (3, 13), reason="this Python has no wheels of it")
def test_where_it_has_one_it_is_asked_for() -> None:
    assert any(
        line.startswith("deepspeed==")
        for line in wanted_for(Path("x"), "cpu", ["deepspeed"], None, None, None).requirements
    )
