"""What a recipe's check gets and gives."""

from __future__ import annotations

import pytest

from core.config import RunConfig
from workers.recipe_api.refusals import Checked, Request

pytestmark = pytest.mark.windows


def test_a_request_shows_the_recipes_own_fields() -> None:
    request = Request(RunConfig(options={"width": 8}), at_default=("lr",))
    assert request.options == {"width": 8} == request.config.options
    assert (request.resumes, request.global_batch, request.at_default) == (False, None, ("lr",))


def test_answers_share_no_settings() -> None:
    assert Checked().settings is not Checked().settings
    assert Checked(["a note"]) == Checked(["a note"], {})
