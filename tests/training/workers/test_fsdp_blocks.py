"""Which parts of a model are gathered one at a time."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="makes real models")
from torch import Tensor, nn  # noqa: E402

from core.config import RunConfig  # noqa: E402
from workers.optim.optimizer import Optimization  # noqa: E402
from workers.optim.precision import Precision  # noqa: E402
from workers.recipes.minigpt.model import MiniGPT, Shape  # noqa: E402
from workers.strategies import RankPlace  # noqa: E402


class Stack(nn.Module):
    """Layers in two lists, one inside a sequence, beside an output layer that is an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)))
        self.inner = nn.Module()
        self.inner.layers = nn.ModuleList([nn.Sequential(nn.Linear(8, 8)), nn.Bilinear(8, 8, 8)])
        self.head = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return x


def names(model: nn.Module) -> list[str]:
    from workers.strategies.fsdp import blocks  # half a second, for every process that collects this file

    known = {module: name for name, module in model.named_modules()}
    return [known[block] for block in blocks(model)]


def test_a_gpts_layers_are_and_its_tied_embedding_stays_with_the_whole() -> None:
    assert names(MiniGPT(Shape(61, 16, 3, 2, 32))) == ["blocks.0", "blocks.1", "blocks.2"]


def test_lists_and_sequences_are_opened_down_to_what_runs() -> None:
    found = ["body.0", "body.2.0", "body.2.1", "inner.layers.0.0", "inner.layers.1"]
    assert names(Stack()) == found
    assert names(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))) == ["0", "2"]
    assert names(nn.Linear(4, 4)) == []


def test_what_shares_a_weight_with_another_part_stays_with_the_whole() -> None:
    model = Stack()
    model.body[0].weight = model.head.weight
    assert "body.0" not in names(model)
    within = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    within[1].weight = within[0].weight
    assert names(within) == []


def test_what_is_tiny_is_not_worth_a_message() -> None:
    assert names(nn.Sequential(nn.Linear(200, 200), nn.LayerNorm(4))) == ["0"]


def test_a_number_without_dimensions_is_refused_in_words() -> None:
    from workers.strategies.fsdp import FsdpStrategy, NotShardableError

    model = nn.Sequential(nn.Linear(2, 2))
    model.register_parameter("temperature", nn.Parameter(torch.ones(())))
    cpu = torch.device("cpu")
    strategy = FsdpStrategy(RankPlace(0, 2, cpu), RunConfig(mode="fsdp", zero_stage=3))
    with pytest.raises(NotShardableError, match="temperature") as caught:
        strategy.replicate(model, Optimization(), 0.1, Precision("fp32", cpu))
    assert "(1,)" in caught.value.next_step
