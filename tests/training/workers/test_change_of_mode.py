"""A checkpoint that any mode on any number of ranks wrote goes on in any other, as if nothing had changed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

pytest.importorskip("torch", reason="trains for real")

import torch
from torch import Tensor, nn

from core.machine.platform import deepspeed_version
from tests.helpers.rank_processes import run_ranks
from tests.training.rank_program import BareRank
from tests.training.workers.tiny_net import train_step
from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision
from workers.state_files import safetensors_files
from workers.state_files.saved_state import SavedState
from workers.strategies import Replica, Strategy
from workers.training.checkpoint import load_part, take_part, write_part

pytestmark = [pytest.mark.slow, pytest.mark.timeout(280)]
BIT_EQUAL = -1.0
STEPS: Final = 3
BATCH: Final = 12
LR: Final = 0.01
RULE: Final = Optimization(weight_decay=0.1, clip_norm=1.0)
LIMIT_S: Final = 120.0


@dataclass(frozen=True)
class Way:
    """A mode and its number of ranks, as the test names them: "zero2 on 3"."""

    mode: str
    world: int
    stage: int = 1
    engine: str = "torch"

    def __str__(self) -> str:
        engine = "deepspeed " if self.engine == "deepspeed" else ""
        return f"{engine}{self.mode}{self.stage if self.mode == 'zero' else ''} on {self.world}"


WAYS: Final = (
    Way("single", 1),
    *(Way("ddp", world) for world in (2, 3)),
    *(Way("zero", world) for world in (2, 3)),
    Way("zero", 2, stage=2),
    *(Way("fsdp", world) for world in (2, 3)),
    *(Way("independent", world) for world in (2, 3)),
    *(Way("zero", 2, stage, "deepspeed") for stage in (1, 2, 3) if deepspeed_version() is not None),
)


def changes(rank: BareRank) -> dict[str, float]:
    """Every mode trains a few steps, commits and makes one step more; then every mode takes up each of those
    checkpoints (`sources`) and makes that same step.

    The processes take turns as one, two and three ranks: what is not needed for a world waits.

    Returns:
        "writer → reader" → the largest difference of any weight (-1: bit-equal).
    """
    folder = rank.folder
    for way, strategy in taking_part(rank, "write"):
        write(way, strategy, folder)
    found: dict[str, float] = {}
    for way, strategy in taking_part(rank, "read"):
        for source, copy in sources(way):
            difference = read(strategy, folder, source, copy, folder / f"scratch-{way}-{source}-{copy}")
            found[f"{source}{f' ({copy})' if copy else ''} → {way}"] = difference
    return found


def sources(reader: Way) -> list[tuple[Way, str]]:
    """Whose checkpoints a way takes up: every mode's and every number of ranks', but not each mode's of each number.

    One rank takes up all. Others take up what one rank and as many as they are wrote, and what their own mode wrote on
    another number. DeepSpeed's stages, whose start is slow, share all out.
    """
    every = [(way, copy) for way in WAYS for copy in copies(way)]
    if reader.engine == "deepspeed":
        return [pair for number, pair in enumerate(every) if pair[0] == reader or number % 3 == reader.stage - 1]
    return [
        (way, copy)
        for way, copy in every
        if reader.world == 1 or way.world in (1, reader.world) or way.mode == reader.mode
    ]


def copies(way: Way) -> list[str]:
    return ["0", "1", "average"] if way.mode == "independent" else [""]


def taking_part(rank: BareRank, round_: str) -> Iterator[tuple[Way, Strategy]]:
    """Every way that needs this rank, one after the other, set up; all processes begin each one together."""
    for number, way in enumerate(WAYS):
        wait_for_all(rank.rank, rank.folder / f"{round_}-{number}")
        if rank.rank >= way.world:
            continue
        settings = {
            "zero_stage": way.stage,
            "zero_engine": way.engine,
            "gradient_exchange": "shared",  # chosen, not measured: three ranks add up in another order over gloo
        }
        with rank.strategy(way.mode, f"{round_}-{number}", world=way.world, **settings) as strategy:
            yield way, strategy
    wait_for_all(rank.rank, rank.folder / f"{round_}-end")


def wait_for_all(rank: int, sign: Path) -> None:
    sign.mkdir(exist_ok=True)
    (sign / str(rank)).touch()
    deadline = time.monotonic() + LIMIT_S
    while sum(1 for _ in sign.iterdir()) < 3:
        if time.monotonic() > deadline:
            raise TimeoutError(sign.name)
        time.sleep(0.005)


def write(way: Way, strategy: Strategy, folder: Path) -> None:
    """A few steps, a checkpoint, and the step after it."""
    replica, data = begin(strategy)
    for step in range(STEPS):
        # Ranks that train alone see samples of their own, so that their copies differ.
        own = data[step].roll(strategy.replica_group * 5, 0) * (1 + strategy.replica_group)
        replica.set_lr(LR)
        train_step(strategy, replica, own)
    target = folder / str(way)
    target.mkdir(exist_ok=True)
    counters = {"step": STEPS, "mode": strategy.name, "world_size": strategy.place.world_size}
    write_part(target, take_part(strategy, replica, STEPS, counters))
    replica.set_lr(LR)
    train_step(strategy, replica, data[STEPS])
    after = whole_weights(strategy, replica, folder / f"scratch-{way}")
    if strategy.group_rank == 0:
        name = f"next_{strategy.replica_group}" if way.mode == "independent" else "next_"
        safetensors_files.write(target / f"{name}.safetensors", after)


def read(strategy: Strategy, folder: Path, source: Way, copy: str, scratch: Path) -> float:
    """Takes up a checkpoint, makes the next step, and compares."""
    replica, data = begin(strategy)
    checkpoint = folder / str(source)
    load_part(checkpoint, strategy, replica, copy)
    replica.set_lr(LR)
    train_step(strategy, replica, data[STEPS])
    after = whole_weights(strategy, replica, scratch)
    if copy == "average":
        expected = average_and_step(checkpoint, source.world, data[STEPS])
    else:
        expected = safetensors_files.read(checkpoint / f"next_{copy}.safetensors")[0]
    assert expected.keys() == after.keys()
    if all(torch.equal(after[name], expected[name]) for name in expected):
        return -1.0
    return max(float((after[name] - expected[name]).abs().max()) for name in expected)


def begin(strategy: Strategy) -> tuple[Replica, Tensor]:
    """A fresh model, alike everywhere, and the batches of all steps, shape (steps, samples, features)."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 16), nn.GELU(), nn.Linear(16, 17), nn.LayerNorm(17), nn.Linear(17, 1))
    data = torch.randn(STEPS + 1, BATCH, 4)
    replica = strategy.replicate(model, RULE, LR, Precision("fp32", strategy.place.device))
    replica.warm_up(replica.module(data[0][:1]).sum())  # as the trainer does: DDP's buckets are then final
    return replica, data


def whole_weights(strategy: Strategy, replica: Replica, scratch: Path) -> dict[str, Tensor]:
    """All weights, also where each rank holds a part of them: through files, as an export would."""
    if not any("_shard" in part.name for part in replica.parts() if part.name.startswith("weights")):
        return safetensors_files.snapshot(replica.model.state_dict(keep_vars=True))
    scratch.mkdir(exist_ok=True)
    write_part(scratch, take_part(strategy, replica, 0, {}))
    strategy.total([0.0])  # every rank's part lies on disk
    saved = SavedState(scratch)
    return {name: saved.weight(name) for name in saved.weight_names()}


def average_and_step(checkpoint: Path, world: int, batch: Tensor) -> dict[str, Tensor]:
    """The step after the mean of all copies' weights and moments, made with torch alone."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 16), nn.GELU(), nn.Linear(16, 17), nn.LayerNorm(17), nn.Linear(17, 1))
    weights = [safetensors_files.read(checkpoint / f"weights_rank{r}.safetensors")[0] for r in range(world)]
    model.load_state_dict({name: sum(w[name].double() for w in weights).div(world).float() for name in weights[0]})
    optimizer = RULE.optimizer(model, LR)
    moments = [safetensors_files.read(checkpoint / f"optimizer_rank{r}.safetensors")[0] for r in range(world)]
    state: dict[int, dict[str, Any]] = {}
    for name, first in moments[0].items():
        number, _, key = name.partition(".")
        mean = sum(m[name].double() for m in moments).div(world).float()
        state.setdefault(int(number), {})[key] = first if key == "step" else mean
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    for part in batch.chunk(2):
        (model(part).square().mean() / 2).backward()
    nn.utils.clip_grad_norm_(model.parameters(), RULE.clip_norm)
    optimizer.step()
    return {name: tensor.detach() for name, tensor in model.state_dict().items()}


@pytest.fixture(scope="module")
def differences(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, float]]:
    """What each of the three processes found: "writer → reader" → how far the next step's weights are apart."""
    return run_ranks(changes, 3, tmp_path_factory.mktemp("changes"))


def test_every_way_goes_on_in_every_other(differences: list[dict[str, float]]) -> None:
    """Adam moves each weight by about 0.01 a step: forgotten moments would show."""
    for rank, found in enumerate(differences):
        readers = [way for way in WAYS if way.world > rank]
        assert len(found) == sum(len(sources(way)) for way in readers)
        worst = max(found, key=lambda pair: found[pair])
        assert found[worst] <= 1e-6, worst


def test_where_the_arithmetic_is_the_same_so_is_every_bit(differences: list[dict[str, float]]) -> None:
    """The same way on the same ranks; ZeRO stage 1 adds and updates as DDP does."""
    same = [(str(way), str(way)) for way in WAYS if way.mode != "independent" and way.engine == "torch"]
    same += [(f"{a} on {n}", f"{b} on {n}") for n in (2, 3) for a, b in (("ddp", "zero1"), ("zero1", "ddp"))]
    same += [(f"independent on {n} ({copy})", "single on 1") for n in (2, 3) for copy in ("0", "1")]
    for pair in (" → ".join(names) for names in same):
        assert {found[pair] for found in differences if pair in found} == {BIT_EQUAL}, pair
