"""Texts of the data preview."""

from __future__ import annotations

import pytest

from app.new_run.preview_text import sample_title, visible

pytestmark = pytest.mark.windows


def test_line_ends_are_seen_and_can_still_end_the_line() -> None:
    assert visible("a\tb\r\n") == "a⇥b␍↵"
    assert visible("a\nb", breaks=True) == "a↵\nb"


def test_a_sample_has_its_length_in_tokens() -> None:
    assert sample_title({"number": 0, "length": 128}) == "Sample 0 (128 tokens)"
