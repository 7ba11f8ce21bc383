"""Attention heads that cannot share the width."""

from __future__ import annotations

import pytest

from core.errors import ConfigError
from workers.recipe_api.refusals import check_heads


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
