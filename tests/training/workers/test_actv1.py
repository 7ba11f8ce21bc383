"""The ACT-v1 recipe's model and its halting head, beside the same mathematics written another way."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from core.config import RunConfig
from core.recipes.catalog import get_recipe
from rankdeck.recipe import ConfigError, Request, check_heads
from workers.recipes.actv1.check import check
from workers.recipes.actv1.halting import Rule, Segments, continue_targets, judge, least_steps
from workers.recipes.actv1.layers import Layer
from workers.recipes.actv1.model import HierarchicalModel, Shape

pytestmark = pytest.mark.windows

SHAPE = Shape(vocab_size=11, seq_len=8, n_embd=8, n_head=2, halt_max_steps=4)
PLAIN = replace(SHAPE, halt_max_steps=1)


def make(shape: Shape = SHAPE, *, opinions: float = 0.0, seed: int = 0) -> HierarchicalModel:
    """A fresh model; with `opinions` its halting head has some, so that tokens halt at different times."""
    torch.manual_seed(seed)
    model = HierarchicalModel(shape)
    nn.init.normal_(model.q_head.weight, 0.0, opinions) if opinions else None
    return model


def some_tokens(rows: int = 3, time: int = 8) -> Tensor:
    return torch.randint(0, 11, (rows, time), generator=torch.Generator().manual_seed(5))


# --- the model --------------------------------------------------------------------------------------------


def normed(x: Tensor) -> Tensor:
    return x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt()


def plain_layer(layer: Layer, x: Tensor) -> Tensor:
    """A layer by the book: attention spelled out, positions as turns of complex numbers."""
    heads, (_, time, width) = layer.n_head, x.shape

    def turned(y: Tensor) -> Tensor:
        pairs = torch.complex(*y.chunk(2, dim=-1))
        speeds = torch.tensor([10_000.0 ** (-2 * i / y.shape[-1]) for i in range(y.shape[-1] // 2)])
        pairs = pairs * torch.exp(1j * torch.arange(time)[:, None] * speeds)
        return torch.cat([pairs.real, pairs.imag], dim=-1)

    q, k, v = (
        (x @ part.T).unflatten(-1, (heads, width // heads)).transpose(1, 2) for part in layer.qkv.weight.chunk(3)
    )
    scores = turned(q) @ turned(k).transpose(-1, -2) / math.sqrt(width // heads)
    scores = scores.masked_fill(torch.ones(time, time).triu(1).bool(), -math.inf)
    x = normed(x + (scores.softmax(-1) @ v).transpose(1, 2).flatten(2) @ layer.out.weight.T)
    gate, up = (x @ part.T for part in layer.gate_up.weight.chunk(2))
    return normed(x + (gate * gate.sigmoid() * up) @ layer.down.weight.T)


def plain_transformer(model: HierarchicalModel, tokens: Tensor) -> Tensor:
    """The two stacks of a model one after the other, as an ordinary transformer; logits."""
    x = normed(model.tokens.weight[tokens] * math.sqrt(model.shape.n_embd))
    for layer in (*model.low, *model.high):
        x = plain_layer(layer, x)
    return x @ model.head.weight.T


def test_one_segment_is_a_plain_transformer_of_both_stacks() -> None:
    model, tokens = make(PLAIN), some_tokens()
    torch.testing.assert_close(model(tokens), plain_transformer(model, tokens), rtol=1e-4, atol=1e-6)


@contextmanager
def counted(model: HierarchicalModel) -> Iterator[Counter[str]]:
    """How often each stack's layers are called, with a gradient and in all."""
    calls: Counter[str] = Counter()
    hooks = []
    for name, stack in (("low", model.low), ("high", model.high)):
        for layer in stack:

            def note(*_: Any, name: str = name) -> None:
                calls[name] += 1
                calls[f"{name} with gradient"] += torch.is_grad_enabled()

            hooks.append(layer.register_forward_pre_hook(note))
    yield calls
    for hook in hooks:
        hook.remove()


@pytest.mark.parametrize(
    ("most", "cycles", "expected"),
    [(1, (1, 1), (2, 2, 2, 2)), (3, (1, 1), (6, 6, 6, 6)), (3, (2, 2), (24, 12, 6, 6)), (1, (1, 3), (6, 2, 2, 2))],
)
def test_layers_are_called_as_often_as_said(most: int, cycles: tuple[int, int], expected: tuple[int, ...]) -> None:
    """Two layers a stack: N·T low and N high updates a segment, of which one each is differentiated."""
    model = make(replace(SHAPE, halt_max_steps=most, h_cycles=cycles[0], l_cycles=cycles[1]))
    with counted(model) as calls:
        model(some_tokens(), some_tokens())
    assert tuple(calls[f"{n}{kind}"] for kind in ("", " with gradient") for n in ("low", "high")) == expected


def test_the_gradient_is_that_of_each_segments_last_updates() -> None:
    """The one-step approximation: what came before stands there as numbers."""
    model, tokens = make(replace(SHAPE, halt_max_steps=2, h_cycles=2, l_cycles=2)), some_tokens()
    other = copy.deepcopy(model)
    model(tokens, tokens)["losses"].mean().backward()

    x = other.tokens(tokens) * math.sqrt(8)
    high = low = torch.zeros_like(x)
    losses = []
    for _ in range(2):
        for number in (1, 2, 3, 4):
            low = normed(low + high + x) if number == 4 else normed(low + high + x).detach()
            for layer in other.low:
                low = plain_layer(layer, low)
            low = low if number == 4 else low.detach()
            if number % 2 == 0:
                high = normed(high + low)
                for layer in other.high:
                    high = plain_layer(layer, high)
                high = high if number == 4 else high.detach()
        losses.append(F.cross_entropy((high @ other.head.weight.T).flatten(0, 1), tokens.flatten()))
        high, low = high.detach(), low.detach()
    (sum(losses) / 2).backward()  # type: ignore[union-attr]
    for (name, a), b in zip(model.named_parameters(), other.parameters(), strict=True):
        if not name.startswith("q_head"):
            torch.testing.assert_close(a.grad, b.grad, rtol=1e-3, atol=1e-6, msg=name)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [PLAIN, replace(SHAPE, h_cycles=2, l_cycles=2)], ids=["one segment", "four"])
def test_every_parameter_has_a_gradient_in_every_step(shape: Shape, dtype: torch.dtype) -> None:
    """DDP waits for each of them. In bf16 too, where weights converted without a gradient must not be kept."""
    model, tokens = make(shape, opinions=0.1), some_tokens()
    with torch.autocast("cpu", dtype=dtype, enabled=dtype != torch.float32):
        objective = judge(model(tokens, tokens), Rule(shape.halt_max_steps)).loss
    objective.backward()
    assert [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()] == []


def test_what_a_token_is_given_depends_on_nothing_after_it() -> None:
    """Neither its logits nor how long it thinks, nor on the rows beside it."""
    model, tokens = make(opinions=3.0).eval(), some_tokens()
    changed = tokens.clone()
    changed[:, 5:] = (changed[:, 5:] + 1) % 11
    first, second = model(tokens, tokens), model(changed, changed)
    steps = first["thinking"].sum(0)
    assert steps.unique().numel() > 1, "tokens halt at different times"
    assert torch.equal(steps[:, :5], second["thinking"].sum(0)[:, :5])
    torch.testing.assert_close(model(tokens)[:, :5], model(changed)[:, :5])
    alone = torch.cat([model(row[None]) for row in tokens])
    torch.testing.assert_close(alone, model(tokens))


def test_the_answer_is_that_of_a_tokens_last_segment_and_ends_early_where_it_may() -> None:
    shape, tokens = SHAPE, some_tokens()
    model, whole = make(shape, opinions=3.0).eval(), make(replace(shape, every_segment=True), opinions=3.0).eval()
    found = judge(model(tokens, tokens), Rule(4))
    expected = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten()).item()
    assert found.metrics["loss"].item() == pytest.approx(expected)
    assert 1 < found.metrics["halt_steps_mean"].item() < 4
    torch.testing.assert_close(judge(whole(tokens, tokens), Rule(4)).metrics["loss"], found.metrics["loss"])
    assert torch.equal(whole(tokens), model(tokens))
    for row in tokens:
        steps = int(model(row[None], row[None])["thinking"].sum(0)[0, -1])
        with counted(model) as calls:
            last = model(row[None], last_only=True)
        assert calls["high"] == 2 * steps, "it thinks until the last token halts"
        torch.testing.assert_close(last, model(row[None])[:, -1])


def test_it_begins_knowing_nothing_and_valuing_both_actions_alike() -> None:
    tokens = torch.randint(0, 11, (16, 8), generator=torch.Generator().manual_seed(1))
    found = judge(make().eval()(tokens, tokens.roll(3)), Rule(4))
    assert found.metrics["loss"].item() == pytest.approx(math.log(11), rel=0.05)
    assert found.metrics["halt_steps_mean"].item() == 4.0


def test_checkpointing_changes_no_gradient() -> None:
    gradients = []
    for switch in (False, True):
        model = make(replace(SHAPE, grad_checkpointing=switch, dropout=0.2, h_cycles=2))
        torch.manual_seed(3)
        judge(model(some_tokens(), some_tokens()), Rule(4)).loss.backward()
        gradients.append([p.grad for p in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*gradients, strict=True) if a is not None and b is not None)


# --- halting ----------------------------------------------------------------------------------------------


def test_exploration_makes_so_many_tokens_think_on_for_every_number_of_steps() -> None:
    torch.manual_seed(0)
    least = least_steps((300, 300), 4, 0.3, torch.device("cpu"))
    assert least is not None
    shares = [(least == number).float().mean().item() for number in (1, 2, 3, 4)]
    assert shares == pytest.approx([0.7, 0.1, 0.1, 0.1], abs=0.01)
    assert least_steps((3,), 4, 0.0, torch.device("cpu")) is least_steps((3,), 1, 0.5, torch.device("cpu")) is None


def test_a_token_that_would_halt_thinks_as_long_as_exploration_says() -> None:
    model = make(replace(SHAPE, halt_exploration=0.5))
    with torch.no_grad():
        model.q_head.bias.copy_(torch.tensor([5.0, -5.0]))
    tokens = some_tokens()
    torch.manual_seed(8)
    steps = model(tokens, tokens)["thinking"].sum(0)
    torch.manual_seed(8)
    least = least_steps(tokens.shape, 4, 0.5, torch.device("cpu"))
    assert least is not None and torch.equal(steps, least) and steps.unique().numel() > 1
    assert judge(model.eval()(tokens, tokens), Rule(4)).metrics["halt_steps_mean"].item() == 1.0


def made_segments(computed: int) -> Segments:
    generator = torch.Generator().manual_seed(2)
    thinking = torch.ones(computed, 2, 5, dtype=torch.bool)
    thinking[1:, 0, :2] = False
    thinking[2:, 1, 3] = False
    thinking[3:] = False
    return {
        "losses": torch.rand(computed, 2, 5, generator=generator),
        "right": torch.rand(computed, 2, 5, generator=generator) < 0.5,
        "q": torch.randn(computed, 2, 5, 2, generator=generator),
        "thinking": thinking,
    }


@pytest.mark.parametrize(("most", "computed"), [(3, 3), (4, 4), (5, 4)])
def test_the_loss_is_the_samples_mean_over_thinking_segments(most: int, computed: int) -> None:
    """Written token by token; thinking ends with the last segment that may be, or with one that looks ahead."""
    segments, rule = made_segments(computed), Rule(most, q_weight=0.7, price=0.05)

    def entropy(logit: Tensor, target: float) -> float:
        p = float(logit.sigmoid())
        return -(target * math.log(p) + (1 - target) * math.log(1 - p))

    def mean(values: list[Any]) -> float:
        return sum(values) / len(values)

    answers, right, steps, means, q_means = [], [], [], [], []
    for row in range(2):
        losses, q_losses = [], []
        for place in range(5):
            for m in range(3):
                q = segments["q"][m, row, place]
                if not segments["thinking"][m, row, place]:
                    continue
                losses.append(float(segments["losses"][m, row, place]))
                q_losses.append(entropy(q[0], float(segments["right"][m, row, place])))
                if m + 1 < computed:
                    halt, go_on = segments["q"][m + 1, row, place].sigmoid().tolist()
                    target = halt if m + 2 == most else max(halt, go_on)
                    q_losses[-1] += entropy(q[1], max(0.0, target - 0.05))
            last = int(segments["thinking"][:, row, place].sum()) - 1
            answers.append(float(segments["losses"][last, row, place]))
            right.append(float(segments["right"][last, row, place]))
            steps.append(last + 1)
        means.append(mean(losses))
        q_means.append(mean(q_losses))

    found = judge(segments, rule)
    assert found.loss.item() == pytest.approx(mean(means) + 0.7 * mean(q_means))
    assert found.metrics["q_loss"].item() == pytest.approx(mean(q_means))
    assert found.metrics["loss"].item() == pytest.approx(mean(answers))
    assert found.metrics["accuracy"].item() == pytest.approx(mean(right))
    assert found.metrics["halt_steps_mean"].item() == pytest.approx(mean(steps))


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_loss_is_the_same_in_micro_batches_of_any_size(size: int) -> None:
    """Loss, gradient and metrics, with exploration; in some rows all tokens halt long before the others."""
    shape, rule = replace(SHAPE, halt_exploration=0.2), Rule(4, price=0.02)
    tokens, found = some_tokens(rows=6), []
    for micro, every in ((6, False), (size, False), (size, True)):
        model = make(replace(shape, every_segment=every), opinions=5.0)
        torch.manual_seed(1)
        sums: dict[str, Tensor] = {}
        for part in tokens.split(micro):
            made = judge(model(part, part.roll(1, 1)), rule)
            (made.loss * len(part) / 6).backward()
            for name, metric in made.metrics.items():
                sums[name] = sums.get(name, torch.zeros(())) + metric * len(part) / 6
        found.append({**sums, **{name: p.grad for name, p in model.named_parameters()}})
    assert found[0]["halt_steps_mean"].item() < 3
    for other in found[1:]:
        for name, value in found[0].items():
            torch.testing.assert_close(other[name], value, rtol=1e-4, atol=1e-6, msg=name)


def test_no_gradient_flows_through_what_the_next_segment_thinks() -> None:
    q = torch.randn(3, 1, 1, 2, requires_grad=True)
    assert not continue_targets(q, Rule(3)).requires_grad


@pytest.mark.slow
def test_the_halting_head_learns_which_tokens_it_will_get_right_and_that_more_steps_do_not_help() -> None:
    """Every other token follows from the one before, the rest are thrown by dice: the first are known after one step.

    With a price on steps nothing is worth a second one, so that without exploration tokens halt after the first.
    """
    model = make(replace(SHAPE, n_embd=32, halt_max_steps=3))
    rule, optimizer = Rule(3, price=0.05), torch.optim.AdamW(model.parameters(), 3e-3)
    generator = torch.Generator().manual_seed(9)

    def rows() -> Tensor:
        thrown = torch.randint(0, 5, (32, 5), generator=generator)
        return torch.stack([thrown, thrown + 5], dim=-1).flatten(1)[:, :9]

    for _ in range(150):
        tokens = rows()
        judge(model(tokens[:, :-1], tokens[:, 1:]), rule).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    tokens = rows()
    with torch.no_grad():
        found = model.eval()(tokens[:, :-1], tokens[:, 1:])
    values = found["q"][0, ..., 0].sigmoid()
    assert values[:, ::2].mean().item() > 0.9, "what follows from the token before is known"
    assert values[:, 1::2].mean().item() == pytest.approx(0.2, abs=0.12), "what is thrown is guessed once in five times"
    assert judge(found, rule).metrics["halt_steps_mean"].item() < 1.2


# --- bad input --------------------------------------------------------------------------------------------


DEFAULTS = {spec.name: spec.default for spec in get_recipe("actv1").fields}
GOOD = DEFAULTS | {"n_embd": 64, "n_head": 4, "tokenizer": "byte", "halt_max_steps": 3, "h_cycles": 1, "l_cycles": 1}


def test_what_cannot_be_trained_is_said_before() -> None:
    assert check(Request(RunConfig(options=GOOD))) == []
    with pytest.raises(ConfigError) as refused:
        check(Request(RunConfig(options={**GOOD, "n_embd": 60})))
    assert refused.value.field == "n_embd" and "60" in refused.value.cause and "64" in refused.value.next_step
    with pytest.raises(ConfigError, match=r"divisible by twice the heads \(60 ÷ \(2 × 4\)\)"):
        check_heads(60, 4, even=True)
    (note,) = check(Request(RunConfig(options={**GOOD, "halt_max_steps": 1, "l_cycles": 2})))
    assert "plain" in note
