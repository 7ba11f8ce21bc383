"""fp16 and bf16: what overflows anywhere is left out everywhere, the scale recovers, is told, and is resumed."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="trains for real")

import torch
from torch import Tensor, nn

from core.checkpoints.store import CheckpointStore
from tests.helpers.forking import ROOT
from tests.helpers.hosted_run import host, lines, make_run, write_text
from tests.helpers.rank_processes import run_ranks
from tests.training.rank_program import CPU, BareRank
from tests.training.workers.sharded_training import is_sharded
from workers.optim.optimizer import Optimization
from workers.optim.precision import Precision, agreed
from workers.strategies import RankPlace, SingleStrategy, Strategy
from workers.training.step_reports import OverflowingError, Overflows

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
MODES = ("ddp", "zero1", "fsdp")
STEPS, OVERFLOW = 6, 3
SCALE = 256.0
# Steps without overflow after which the scale doubles: few, so that this is seen too.
GROWTH = 2


class Spiky(nn.Module):
    """A small network, and weights whose gradient is whatever the batch says."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 1))
        self.spike = nn.Parameter(torch.zeros(6))

    def forward(self, inputs: Tensor, wanted: Tensor) -> Tensor:
        """One number for each row of `inputs`, shape (n, 8)."""
        out: Tensor = self.net(inputs).float() + (self.spike.float() * wanted).sum()
        return out


def train(strategy: Strategy, precision: Precision, overflow_rank: int | None = None) -> dict[str, Any]:
    """A few steps; after each the scale, whether the norm was finite, and a digest of all weights."""
    torch.manual_seed(4)
    model = Spiky()
    replica = strategy.replicate(model, Optimization(clip_norm=1.0), 0.01, precision)
    data = torch.randn(STEPS, 16, 9, generator=torch.Generator().manual_seed(1))
    told: dict[str, Any] = {"scales": [], "finite": [], "digests": [], "losses": []}
    for step in range(STEPS):
        part = data[step].chunk(strategy.group_size)[strategy.group_rank]
        wanted = torch.zeros(6)
        if step == OVERFLOW and strategy.place.rank == overflow_rank:
            wanted[0] = 3e38  # one element alone, which lies in one rank's shard
        with replica.micro_batch(last=True):
            with precision.forward():
                loss = (replica.module(part[:, :8], wanted) - part[:, 8:]).square().mean()
            replica.backward(loss, last=True)
        told["finite"].append(bool(torch.isfinite(replica.update())))
        scale = precision.loss_scale()
        told["scales"].append(None if scale is None else float(scale))
        told["digests"].append(digest(model))
        told["losses"].append(float(loss.detach()))
    return told


def digest(model: nn.Module) -> str:
    found = hashlib.sha256()
    for value in model.state_dict().values():
        whole = value.full_tensor() if is_sharded(value) else value
        found.update(whole.detach().contiguous().numpy().tobytes())
    return found.hexdigest()[:16]


def fp16() -> Precision:
    """fp16 whose scale does not overflow by itself here, and soon doubles."""
    precision = Precision("fp16", CPU)
    precision.scaler = torch.amp.GradScaler("cpu", init_scale=SCALE, growth_interval=GROWTH)
    return precision


def every_mode(rank: BareRank) -> dict[str, Any]:
    """Every mode in turn, with an overflow on one rank; together, since starting a process takes longest."""
    found = {}
    for mode in MODES:
        with rank.strategy(mode, gradient_exchange="plain") as strategy:
            found[mode] = train(strategy, fp16(), overflow_rank=1)
    return found


def test_an_overflow_on_one_rank_leaves_the_step_out_on_all(tmp_path: Path) -> None:
    first, second = run_ranks(every_mode, 2, tmp_path)
    for mode in MODES:
        for rank in (first[mode], second[mode]):
            assert rank["finite"] == [step != OVERFLOW for step in range(STEPS)], mode
            # doubled after two good steps, halved by the overflow, and doubled again after two more
            assert rank["scales"] == [SCALE, 2 * SCALE, 2 * SCALE, SCALE, SCALE, 2 * SCALE], mode
            digests = rank["digests"]
            assert digests[OVERFLOW] == digests[OVERFLOW - 1], f"{mode}: the step was made all the same"
            assert len(set(digests)) == STEPS - 1, f"{mode}: another step changed nothing"
        assert first[mode]["digests"] == second[mode]["digests"], f"{mode}: the ranks' weights differ"


@pytest.mark.parametrize(("name", "tolerance"), [("bf16", 0.02), ("fp16", 0.005)])
def test_half_precision_trains_as_fp32_does(name: str, tolerance: float) -> None:
    strategy = SingleStrategy(RankPlace(0, 1, CPU))
    exact = train(strategy, Precision("fp32", CPU))
    half = train(strategy, fp16() if name == "fp16" else Precision(name, CPU))
    assert half["losses"] != exact["losses"], "it was not computed in that format"
    assert half["losses"] == pytest.approx(exact["losses"], rel=tolerance)
    assert exact["scales"] == [None] * STEPS


def test_the_scale_is_told_saved_and_resumed(tmp_path: Path) -> None:
    """Rank 1 overflows in step 4; checkpoints after step 6 are taken away, and the run resumes from there."""
    store = make_run(
        tmp_path / "run",
        write_text(tmp_path / "text.txt"),
        "ddp",
        2,
        recipe=str(ROOT / "tests" / "helpers" / "recipes" / "unequal"),
        precision="fp16",
        steps=9,
        checkpoint_every_steps=6,
        options={"overflow_rank": 1, "overflow_batch": 4, "n_embd": 16, "n_layer": 1},
    )
    assert host(store) == 0
    told = {(line["rank"], line["step"]): line["loss_scale"] for line in lines(store, "step")}
    for rank in (0, 1):
        assert [told[rank, step] for step in range(1, 10)] == [65536.0] * 3 + [32768.0] * 6
    for checkpoint in CheckpointStore(store.checkpoints).list():
        if checkpoint.step > 6:
            shutil.rmtree(checkpoint.folder)
    before = {(line["rank"], line["step"]): line["loss"] for line in lines(store, "step")}
    assert host(store) == 0
    again = {(line["rank"], line["step"]): line for line in lines(store, "step") if line["attempt"] == 2}
    assert sorted(again) == [(rank, step) for rank in (0, 1) for step in (7, 8, 9)]
    for place, line in again.items():
        assert line["loss_scale"] == 32768.0
        assert line["loss"] == before[place], "bit by bit the same"


def test_ranks_that_compute_in_step_agree_on_auto() -> None:
    assert agreed("auto", CPU, 1, lambda values: list(values)) == "fp32"
    assert agreed("fp16", CPU, 2, lambda values: list(values)) == "fp16"
    # two GPUs: the sum says how many of them have bf16
    assert agreed("auto", CPU, 2, lambda _: [2.0]) == "bf16"
    assert agreed("auto", CPU, 2, lambda _: [1.0]) == "fp32"


def test_fifty_overflows_in_a_row_end_the_run() -> None:
    overflows = Overflows(CPU)
    good, bad = torch.tensor(0.5), torch.tensor(torch.inf)
    for step in range(1, 120):
        overflows.note(step, good if step in (12, 69) else bad)  # the count is read every ten steps
    with pytest.raises(OverflowingError, match="Up to step 120"):
        overflows.note(120, bad)
