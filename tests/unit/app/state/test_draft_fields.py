"""Fields of the New run sheet, and which of them have an effect."""

from __future__ import annotations

import pytest

from app.state.draft_fields import (
    OF_MODE,
    default_mode_texts,
    fields_of_mode,
    fields_without_effect,
    form_fields,
    given_text,
    is_given,
    settings_without_meaning,
    text_of,
)
from core.config.run_config import FIELD_BY_NAME
from core.recipes.catalog import get_recipe

pytestmark = pytest.mark.windows


def test_an_empty_field_says_nothing_unless_text_may_be_empty() -> None:
    spec = {field.name: field for field in form_fields(get_recipe("minigpt"))}
    assert not is_given(spec["steps"], " ", "1000") and is_given(spec["steps"], "5", "1000")
    assert is_given(spec["sample_prompt"], "", "def ") and not is_given(spec["text_column"], "", "")


def test_a_value_that_was_switched_off_is_told_from_one_that_was_never_set() -> None:
    assert given_text(FIELD_BY_NAME["checkpoint_every_s"], None) == "none"
    assert given_text(FIELD_BY_NAME["checkpoint_every_steps"], None) == ""
    assert text_of(FIELD_BY_NAME["lr"], 0.001) == "0.001"


def test_what_a_mode_does_not_use_is_left_out() -> None:
    texts = default_mode_texts()
    assert "zero_stage" in fields_of_mode("zero", texts) and fields_of_mode("ddp", texts) == ()
    assert settings_without_meaning("ddp", texts, 1) == frozenset(OF_MODE)
    assert "work_stealing" in settings_without_meaning("ddp", texts, 2)
    assert settings_without_meaning("auto", texts, 2) == frozenset()


def test_a_fields_effect_follows_the_field_it_depends_on() -> None:
    recipe = get_recipe("minigpt")
    assert fields_without_effect(recipe, {}) == {"vocab_size": "Byte tokens are always 256."}
    assert fields_without_effect(recipe, {"tokenizer": "bpe"}) == {}
