"""ZeRO stages 1 to 3 under DeepSpeed, on two real processes over gloo: the same model as DDP, less memory."""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

import pytest

pytest.importorskip("torch", reason="trains for real")

import torch
from torch import Tensor, nn

from core.checkpoints.full_weights import export_weights
from tests.helpers.deepspeed_here import needs_deepspeed
from tests.helpers.rank_processes import run_ranks
from tests.training.rank_program import CPU, BareRank
from tests.training.workers.sharded_training import (
    RESUMED_AT,
    OddGPT,
    Training,
    curve,
    evaluation,
    generated,
    resumed,
    stored,
)
from workers.state_files.safetensors_files import read
from workers.strategies import RankPlace, SingleStrategy, Strategy
from workers.strategies.deepspeed.engine import import_deepspeed
from workers.strategies.deepspeed.zero import DeepSpeedReplica

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240), needs_deepspeed]

STAGES = ("1", "2", "3")
# One kernel over all elements takes its last few by other instructions, and which are last differs under DeepSpeed.
PLAIN: Final = {"fused": False}
# The model is tiny: else stage 3 would keep all of it whole on every rank.
CUT_ALL: Final = json.dumps({"zero_optimization": {"stage": 3, "stage3_param_persistence_threshold": 0}})


class DeepSpeedTraining(Training):
    """A stage under DeepSpeed, or DDP to compare it with."""

    def __init__(self, strategy: Strategy, **options: Any) -> None:
        super().__init__(strategy, **{"options": PLAIN, **options})

    @classmethod
    @contextmanager
    def on(cls, rank: BareRank, way: str, settings: Mapping[str, Any] | None = None, **options: Any) -> Iterator[Self]:
        engine = {} if way == "ddp" else {"zero_engine": "deepspeed"}
        if way == "3":
            engine["deepspeed_config"] = CUT_ALL
        with super().on(rank, way, {**engine, **(settings or {})}, **options) as training:
            yield training

    def text(self) -> list[int]:
        return generated(self.replica.evaluated)

    def digest(self, *, buffers: bool = True) -> str:
        digest = hashlib.sha256()
        if isinstance(self.replica, DeepSpeedReplica):
            self.replica.shards.let_go()
        for name, parameter in self.model.named_parameters():
            digest.update(name.encode() + whole(parameter).contiguous().view(-1).view(torch.uint8).numpy().tobytes())
        for buffer in self.model.buffers() if buffers else ():
            digest.update(buffer.contiguous().view(-1).view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    def bytes_held(self) -> dict[str, int]:
        replica = self.replica
        held = {
            "weights": stored(self.model.parameters()),
            "optimizer": stored(v for s in replica.optimizer.state.values() for v in s.values() if v.dim()),
        }
        if isinstance(replica, DeepSpeedReplica):
            held["masters"] = stored(replica.shards.buffers())
        return held


def whole(parameter: nn.Parameter) -> Tensor:
    """All of a parameter, in fp32; all ranks call it."""
    value = parameter.detach()
    if hasattr(parameter, "ds_id"):
        import deepspeed

        if parameter.requires_grad:
            return deepspeed.utils.safe_get_full_fp32_param(parameter)
        with deepspeed.zero.GatheredParameters([parameter]):
            value = parameter.detach().clone()
    elif hasattr(parameter, "_hp_mapping"):
        import deepspeed

        return deepspeed.utils.safe_get_full_fp32_param(parameter)
    return value


def short(
    rank: BareRank, way: str, settings: Mapping[str, Any] | None = None, *, micro: int = 1, **options: Any
) -> dict[str, Any]:
    with DeepSpeedTraining.on(rank, way, settings, **options) as training:
        # Also more micro-batches than were announced.
        losses = training.run(0, 5, micro=micro) + training.run(5, 6, micro=2 * micro)
        masters: list[str] = []
        if isinstance(training.replica, DeepSpeedReplica):
            masters = sorted({str(buffer.dtype) for buffer in training.replica.shards.buffers()})
        return {"losses": losses, "norm": float(training.norm), "masters": masters}


def every_stage(rank: BareRank) -> dict[str, Any]:
    import_deepspeed(rank.place("import"))
    gc.freeze()  # each of its engines has all that is there looked through
    every = ("ddp", *STAGES)
    found: dict[str, Any] = {"whole": {way: curve(DeepSpeedTraining, rank, way) for way in every}}
    pairs = [*((way, way) for way in STAGES), ("3", "ddp"), ("1", "3"), ("ddp", "2")]
    found["resumed"] = {f"{way} from {by}": resumed(DeepSpeedTraining, rank, way, by) for way, by in pairs}
    twice = {"grad_accum_steps": 2}
    found["clipped"] = {way: short(rank, way, twice, micro=2, clip=0.5) for way in every}
    found["bf16"] = {way: short(rank, way, precision="bf16", clip=1.0) for way in every}
    found["offload"] = {
        way: short(rank, way, {**twice, "offload_optimizer": True, "offload_parameters": way == "3"}, micro=2, clip=0.5)
        for way in STAGES
    }
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("deepspeed")


@pytest.fixture(scope="module")
def two(folder: Path) -> list[dict[str, Any]]:
    """What two ranks found. No compiler is on their path: DeepSpeed must not build anything."""
    with pytest.MonkeyPatch.context() as patch:
        (folder / "bin").mkdir()
        patch.setenv("PATH", str(folder / "bin"))
        patch.setenv("TORCH_EXTENSIONS_DIR", str(folder / "extensions"))
        found = run_ranks(every_stage, 2, folder)
    assert not (folder / "extensions").exists()
    return found


def test_every_stage_trains_what_ddp_trains(two: list[dict[str, Any]]) -> None:
    """Stages 1 and 2 bit for bit with one micro-batch a step; stage 3 within 1e-4."""
    ddp = two[0]["whole"]["ddp"]
    assert ddp["losses"][-1] < ddp["losses"][0] - 1.5, "it learns"
    assert len(ddp["losses"]) == 40
    for rank in two:
        for stage in ("1", "2"):
            assert rank["whole"][stage]["losses"] == ddp["losses"]
            assert rank["whole"][stage]["digest"] == ddp["digest"]
        assert _apart(rank["whole"]["3"]["losses"], ddp["losses"]) <= 1e-4


def test_clipped_and_in_several_micro_batches_they_differ_by_rounding_only(two: list[dict[str, Any]]) -> None:
    """DeepSpeed clips by a norm of its own, and stages 2 and 3 average each micro-batch's gradient at once."""
    ddp = two[0]["clipped"]["ddp"]
    assert ddp["norm"] > 0.5, "it is clipped"
    for found in (two[0]["clipped"], two[0]["offload"]):
        for stage in STAGES:
            assert _apart(found[stage]["losses"], ddp["losses"]) <= 1e-5
            assert found[stage]["norm"] == pytest.approx(ddp["norm"], rel=1e-4)


def test_measured_bytes_prove_what_is_sharded(two: list[dict[str, Any]]) -> None:
    whole = two[0]["whole"]["ddp"]["bytes"]
    for stage in STAGES:
        held = [rank["whole"][stage]["bytes"] for rank in two]
        # A group's buffer is filled up to a multiple of the ranks.
        assert sum(h["optimizer"] for h in held) == pytest.approx(whole["optimizer"], rel=0.01)
        assert max(h["optimizer"] for h in held) < 0.51 * whole["optimizer"]
        assert max(h["masters"] for h in held) < 0.51 * whole["weights"]
        weights = [h["weights"] for h in held]
        assert weights == [0, 0] if stage == "3" else min(weights) >= whole["weights"]


def test_stopped_and_resumed_each_stage_goes_on_bit_for_bit(two: list[dict[str, Any]]) -> None:
    for stage in STAGES:
        whole, again = two[0]["whole"][stage], two[0]["resumed"][f"{stage} from {stage}"]
        assert again["losses"] == whole["losses"][RESUMED_AT:]
        assert again["digest"] == whole["digest"]


@pytest.mark.parametrize("change", ["3 from ddp", "1 from 3", "ddp from 2"])
def test_one_mode_takes_up_what_another_wrote(two: list[dict[str, Any]], change: str) -> None:
    whole, again = two[0]["whole"]["ddp"], two[0]["resumed"][change]
    assert _apart(again["losses"], whole["losses"][RESUMED_AT:]) <= (1e-4 if "3" in change else 0.0)


def test_evaluation_and_sampling_say_what_ddp_says(two: list[dict[str, Any]]) -> None:
    ddp = two[0]["whole"]["ddp"]
    for rank in two:
        for stage in STAGES:
            found = rank["whole"][stage]
            assert found["val_losses"] == pytest.approx(ddp["val_losses"], abs=1e-4)
            assert found["text"] == ddp["text"]
            assert found["untouched"]


@pytest.mark.parametrize("stage", STAGES)
def test_the_exported_weights_are_a_plain_models(two: list[dict[str, Any]], folder: Path, stage: str) -> None:
    target = folder / f"model-{stage}.safetensors"
    export_weights(sorted((folder / f"{stage}-end").glob("weights*.safetensors")), target)
    if stage != "3":
        assert target.read_bytes() == (folder / "ddp-end" / "weights.safetensors").read_bytes()
    model = OddGPT()
    model.load_state_dict(read(target)[0])
    plain, _ = evaluation().measure(model, SingleStrategy(RankPlace(0, 1, CPU)))
    assert plain == pytest.approx(two[0]["whole"][stage]["val_losses"][0], rel=1e-6)


def test_bf16_keeps_whole_masters(two: list[dict[str, Any]]) -> None:
    """DeepSpeed's weights are bf16, DDP's fp32 with a forward pass in bf16, so the curves are near, not equal."""
    ddp = two[0]["bf16"]["ddp"]["losses"]
    for stage in STAGES:
        found = two[0]["bf16"][stage]
        assert found["masters"] == ["torch.float32"]
        assert _apart(found["losses"], ddp) < 0.1
        assert found["losses"] == two[1]["bf16"][stage]["losses"]


def _apart(one: list[float], other: list[float]) -> float:
    return max(abs(a - b) for a, b in zip(one, other, strict=True))
