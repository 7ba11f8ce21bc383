"""Text written one token a pass is the text that whole passes write; broken weights and stops end it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402

from workers.decoding import WeightsNotFiniteError, write_tokens  # noqa: E402
from workers.recipes.minigpt.model import MiniGPT, Shape  # noqa: E402

PROMPT = torch.tensor([3, 1, 4, 1, 5])
LENGTH = 20  # with the prompt more than 16, so that a window of 16 moves, and less than 64


def minigpt(seq_len: int) -> MiniGPT:
    torch.manual_seed(1)
    model = MiniGPT(Shape(50, seq_len, 3, 4, 32)).eval()
    for parameter in model.parameters():  # larger than at the start, so that tokens depend on what is before them
        parameter.data.mul_(4.0)
    return model


def whole_passes(logits: Callable[[Tensor], Tensor], seq_len: int, count: int, temperature: float) -> Tensor:
    with torch.no_grad():
        generator = torch.Generator().manual_seed(7)
        return write_tokens(lambda text: logits(text[None, -seq_len:]), PROMPT, count, temperature, generator)


@pytest.mark.parametrize("temperature", [0.0, 0.9])
@pytest.mark.parametrize("seq_len", [64, 16, 4])
def test_minigpt_writes_the_same_text_with_what_it_keeps(seq_len: int, temperature: float) -> None:
    """64: all of the text fits; 16: the window begins to move; 4: it is shorter than the prompt."""
    model = minigpt(seq_len)
    expected = whole_passes(lambda window: model(window)[0, -1], seq_len, LENGTH, temperature)
    generator = torch.Generator().manual_seed(7)
    assert torch.equal(write_tokens(model.writer(), PROMPT, LENGTH, temperature, generator), expected)
    assert len(set(expected[len(PROMPT) :].tolist())) > 1


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_weights_that_are_not_finite_are_said_and_end_the_text(temperature: float) -> None:
    model = minigpt(64)
    model.norm.weight.data.fill_(float("nan"))
    asked: list[bool] = []

    def keep_on(broken: bool) -> bool:
        asked.append(broken)
        return not broken

    with pytest.raises(WeightsNotFiniteError):
        write_tokens(model.writer(), PROMPT, 40, temperature, torch.Generator(), keep_on)
    assert asked == [False, True]


def test_a_text_ends_before_the_token_at_which_it_is_told_to() -> None:
    model = minigpt(64)
    generator = torch.Generator()
    whole = write_tokens(model.writer(), PROMPT, 10, 0.0, generator)
    left = iter([True, True, True, False])
    assert torch.equal(write_tokens(model.writer(), PROMPT, 10, 0.0, generator, lambda _: next(left)), whole[:8])
