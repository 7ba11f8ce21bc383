"""A rank's part of a checkpoint: back bit by bit, or refused in words."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from core.errors import StateFileError
from core.protocol.messages import StagedFile
from workers.optim import seeding
from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.state_files import safetensors_files
from workers.state_files.saved_state import SavedState
from workers.strategies import RankPlace, Replica, SingleStrategy, Strategy
from workers.strategies.single import IndependentStrategy
from workers.training.checkpoint import load_part, take_part, write_part

CPU = torch.device("cpu")


class Tied(nn.Module):
    """Two names for one parameter, a buffer of integers, and something to train."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, width)
        self.norm = nn.BatchNorm1d(width)
        self.head = nn.Linear(width, 5, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.head(self.norm(self.embedding(x)))
        return y


RULE = Optimization(options={"betas": (0.9, 0.95)})


def trained(strategy: Strategy, steps: int = 3, rule: Optimization = RULE) -> tuple[Tied, Replica]:
    model = Tied()
    replica = strategy.replicate(model, rule, 0.01, Precision("fp32", CPU))
    for _ in range(steps):
        replica.backward(model(torch.randint(0, 5, (8,))).square().mean(), last=True)
        replica.update()
    return model, replica


def committed(tmp_path: Path, strategy: SingleStrategy | IndependentStrategy) -> tuple[Tied, list[StagedFile]]:
    model, replica = trained(strategy)
    part = take_part(strategy, replica, 3, {"step": 3, "samples_seen": 24})
    expected = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with torch.no_grad():
        model.embedding.weight.zero_()  # training continues while the part is written
    staged = write_part(tmp_path, part)
    model.load_state_dict(expected)
    manifest = {"files": [{"name": f.name, "size": f.size, "sha256": f.sha256} for f in staged]}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return model, staged


def test_weights_optimizer_and_counters_come_back_bit_by_bit(tmp_path: Path) -> None:
    strategy = SingleStrategy(RankPlace(0, 1, CPU))
    seeding.seed_everything(5)
    model, staged = committed(tmp_path, strategy)
    assert [file.name for file in staged] == ["weights.safetensors", "optimizer.safetensors", "rank0.safetensors"]
    drawn = (random.random(), float(np.random.rand()), float(torch.rand(())))
    seeding.seed_everything(99)

    other, replica = trained(strategy, 1)
    counters = load_part(tmp_path, strategy, replica)
    assert counters == {"step": 3, "samples_seen": 24}
    assert (random.random(), float(np.random.rand()), float(torch.rand(()))) == drawn
    assert other.head.weight is other.embedding.weight
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name]), name
    # the optimizer goes on alike
    seeding.seed_everything(7)
    reference, fresh = trained(strategy, 0)
    load_part(tmp_path, strategy, fresh)
    for each in (replica, fresh):
        each.backward(each.model(torch.arange(5)).square().mean(), last=True)
        each.update()
    assert torch.equal(other.embedding.weight, reference.embedding.weight)
    assert replica.optimizer.state_dict()["param_groups"][0]["betas"] in ((0.9, 0.95), [0.9, 0.95])


def test_a_file_that_was_changed_is_refused(tmp_path: Path) -> None:
    strategy = SingleStrategy(RankPlace(0, 1, CPU))
    committed(tmp_path, strategy)
    path = tmp_path / "weights.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(StateFileError, match="SHA-256"):
        load_part(tmp_path, strategy, trained(strategy, 0)[1])


def test_a_file_cut_short_is_refused_without_a_manifest_too(tmp_path: Path) -> None:
    strategy = SingleStrategy(RankPlace(0, 1, CPU))
    committed(tmp_path, strategy)
    (tmp_path / "manifest.json").unlink()
    path = tmp_path / "rank0.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(StateFileError, match=r"rank0\.safetensors cannot be read"):
        load_part(tmp_path, strategy, trained(strategy, 0)[1])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    strategy = SingleStrategy(RankPlace(0, 1, CPU))
    committed(tmp_path, strategy)
    (tmp_path / "optimizer.safetensors").unlink()
    with pytest.raises(StateFileError, match=r"no optimizer\.safetensors"):
        load_part(tmp_path, strategy, trained(strategy, 0)[1])


def test_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    committed(tmp_path, SingleStrategy(RankPlace(0, 1, CPU)))
    with pytest.raises(StateFileError, match="do not fit this model"):
        SavedState(tmp_path).load_model(Tied(width=6))


def test_the_state_of_another_optimizer_is_refused(tmp_path: Path) -> None:
    strategy = SingleStrategy(RankPlace(0, 1, CPU))
    committed(tmp_path, strategy)
    _, replica = trained(strategy, 0, Optimization(kind=torch.optim.SGD))
    with pytest.raises(StateFileError, match="trained with AdamW so far") as refused:
        load_part(tmp_path, strategy, replica)
    assert refused.value.title == "The optimizer is different"


def test_a_rank_that_was_not_there_before_starts_from_rank_0(tmp_path: Path) -> None:
    model, _ = committed(tmp_path, IndependentStrategy(RankPlace(0, 1, CPU)))
    second = IndependentStrategy(RankPlace(1, 2, CPU))
    other, replica = trained(second, 0)
    counters = load_part(tmp_path, second, replica)
    assert counters["step"] == 3 and torch.equal(model.embedding.weight, other.embedding.weight)


def test_tied_weights_are_written_once(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    tensors = safetensors_files.snapshot(Tied(64).state_dict(keep_vars=True))
    safetensors_files.write(path, tensors)
    assert path.stat().st_size < 2 * 5 * 64 * 4 + 1_500
    read, values = safetensors_files.read(path)
    assert set(read) == set(tensors) and values == {}
    assert torch.equal(read["head.weight"], read["embedding.weight"])


def test_the_same_tensors_make_the_same_file(tmp_path: Path) -> None:
    tensors = {"b": torch.arange(3), "a": torch.ones(2, 2, dtype=torch.bfloat16), "c": torch.zeros(0)}
    safetensors_files.write(tmp_path / "1", tensors, {"x": 1})
    safetensors_files.write(tmp_path / "2", dict(reversed(tensors.items())), {"x": 1})
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_what_happens_untouched_leaves_every_generator_alone() -> None:
    seeding.seed_everything(3)
    with seeding.untouched(CPU):
        assert (random.random(), np.random.randn(), torch.randn(3)) is not None
    after = (random.random(), float(np.random.rand()), float(torch.rand(())))
    seeding.seed_everything(3)
    assert after == (random.random(), float(np.random.rand()), float(torch.rand(())))
