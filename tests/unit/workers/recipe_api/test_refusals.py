"""What a recipe's check gets and gives."""

from __future__ import annotations

import pytest

from core.config import RunConfig
from core.errors import ConfigError
from workers.recipe_api.refusals import Checked, Request, check_heads


def test_a_request_shows_the_recipes_own_fields() -> None:
    request = Request(RunConfig(options={"width": 8}), at_default=("lr",))
    assert request.options == {"width": 8} == request.config.options
    assert (request.resumes, request.global_batch, request.at_default) == (False, None, ("lr",))


def test_answers_share_no_settings() -> None:
    assert Checked().settings is not Checked().settings
    assert Checked(["a note"]) == Checked(["a note"], {})


@pytest.mark.parametrize(
    ("width", "heads", "even", "step"),
    [
        (128, 3, False, "Try 129, or 4 heads."),
        (3, 8, False, "Try 8, or 3 heads."),
        (65, 4, False, "Try 64, or 5 heads."),
        (60, 4, True, "Try 64, or 5 heads."),
        (7, 2, True, "Try 8."),
    ],
)
def test_heads_that_cannot_share_the_width_are_refused(width: int, heads: int, even: bool, step: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_heads(width, heads, even=even)
    assert (refused.value.field, refused.value.next_step) == ("n_embd", step)
    check_heads(128, 4, even=True)
