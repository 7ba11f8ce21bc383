"""Text written one token a pass is the text that whole passes write; broken weights and stops end it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402

from workers.decoding.written_tokens import WeightsNotFiniteError, write_tokens  # noqa: E402
from workers.recipes.actv1.model import HierarchicalModel, Segment  # noqa: E402
from workers.recipes.actv1.model import Shape as ThinkingShape  # noqa: E402
from workers.recipes.minigpt.model import MiniGPT, Shape  # noqa: E402

PROMPT = torch.tensor([3, 1, 4, 1, 5])
LENGTH = 20  # with the prompt more than 16, so that a window of 16 moves, and less than 64


def minigpt(seq_len: int) -> MiniGPT:
    torch.manual_seed(1)
    model = MiniGPT(Shape(50, seq_len, 3, 4, 32)).eval()
    for parameter in model.parameters():  # larger than at the start, so that tokens depend on what is before them
        parameter.data.mul_(4.0)
    return model


def thinking(seq_len: int, *, every_segment: bool = False) -> HierarchicalModel:
    torch.manual_seed(2)
    shape = ThinkingShape(50, seq_len, 32, 4, h_cycles=2, l_cycles=2, halt_max_steps=4, every_segment=every_segment)
    model = HierarchicalModel(shape).eval()
    torch.nn.init.normal_(model.q_head.weight, 0.0, 1.0)  # tokens halt after different numbers of segments
    model.head.weight.data.mul_(30.0)
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


@pytest.mark.parametrize("every_segment", [False, True])
@pytest.mark.parametrize("temperature", [0.0, 0.9])
@pytest.mark.parametrize("seq_len", [64, 16, 4])
def test_actv1_writes_the_same_text_with_what_it_keeps(seq_len: int, temperature: float, every_segment: bool) -> None:
    model = thinking(seq_len, every_segment=every_segment)
    expected = whole_passes(lambda window: model(window, last_only=True)[0], seq_len, LENGTH, temperature)
    generator = torch.Generator().manual_seed(7)
    assert torch.equal(write_tokens(model.writer(), PROMPT, LENGTH, temperature, generator), expected)
    assert len(set(expected[len(PROMPT) :].tolist())) > 3


def test_actv1_logits_are_those_of_a_whole_pass_however_long_each_token_thought() -> None:
    model, text = thinking(64), torch.randint(50, (1, 30), generator=torch.Generator().manual_seed(3))
    thoughts = [Segment() for _ in range(4)]
    with torch.no_grad():
        for end in (5, 6, 7, 12, 13, 30):
            kept = model(text[:, :end], last_only=True, thoughts=thoughts)
            torch.testing.assert_close(kept, model(text[:, :end], last_only=True), rtol=1e-4, atol=1e-4)
    lengths = [segment.length for segment in thoughts]
    assert lengths[0] == 30 and lengths == sorted(lengths, reverse=True)
    assert len(set(lengths)) > 1, "some tokens halted before others, or this test shows nothing"


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
