"""How many samples a number of tokens makes."""

from __future__ import annotations

import numpy as np
import pytest

from core.errors import DatasetError
from workers.data.windows import Windows, cut_windows, opening_text

hypothesis = pytest.importorskip("hypothesis", reason="property tests need hypothesis")
st = pytest.importorskip("hypothesis.strategies", reason="property tests need hypothesis")

pytestmark = pytest.mark.windows


@pytest.mark.parametrize(
    ("tokens", "fraction", "windows"),
    [
        (10, 0.1, Windows(5, 1, 1)),  # the least: one window of 4 + 1 tokens on each side
        (100, 0.1, Windows(90, 22, 2)),
        (100, 0.0, Windows(95, 23, 1)),
        (101, 0.5, Windows(51, 12, 12)),
    ],
)
def test_the_end_is_held_out(tokens: int, fraction: float, windows: Windows) -> None:
    assert cut_windows(tokens, 4, fraction) == windows


@pytest.mark.parametrize(
    ("held_out", "prompt"),
    [
        ("enly Sieglinde saw the house. It was old.\nThen", "Sieglinde saw the house. It was old."),
        ("f(x):\n    return x + 1\n", "return x + 1"),
        ("\n\n  Once upon a time there was a very small princess who", "upon a time there was a very small"),
        ("北京的夏天很热", "北京的夏天很热"),
        ("x" * 64, "x" * 40),
        (" \n \n", "\n"),
        ("", "\n"),
    ],
)
def test_a_sample_begins_as_the_held_out_text_does(held_out: str, prompt: str) -> None:
    tokens = np.frombuffer(held_out.encode("utf-8"), np.uint8).astype(np.uint16)
    assert opening_text(tokens, lambda ids: bytes(ids).decode("utf-8", "replace")) == prompt


def test_too_few_tokens_are_refused_with_the_number_needed() -> None:
    with pytest.raises(DatasetError, match=r"has 9 tokens.* at least 10 are needed") as caught:
        cut_windows(9, 4, 0.1)
    assert caught.value.title == "The dataset is too small"
    with pytest.raises(DatasetError):
        cut_windows(100, 4, 0.96)


@hypothesis.given(st.integers(1, 40), st.integers(0, 2_000), st.floats(0, 0.9))
def test_every_window_and_its_next_token_lie_on_its_side(seq_len: int, more: int, fraction: float) -> None:
    tokens = 2 * seq_len + 2 + more
    try:
        cut = cut_windows(tokens, seq_len, fraction)
    except DatasetError:
        assert tokens - int(tokens * fraction) < seq_len + 1
        return
    assert cut.samples >= 1 and cut.val_samples >= 1
    assert cut.samples * seq_len + 1 <= cut.train_tokens < (cut.samples + 1) * seq_len + 1
    assert cut.val_samples * seq_len + 1 <= tokens - cut.train_tokens
