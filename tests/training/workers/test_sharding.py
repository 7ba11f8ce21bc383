"""ZeRO stages 1 to 3 and FSDP with PyTorch's means, on real processes over gloo: the same model as DDP, less memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="trains for real")

import torch

from core.checkpoints.full_weights import export_weights
from tests.helpers.rank_processes import run_ranks
from tests.training.rank_program import CPU, BareRank
from tests.training.workers.sharded_training import RESUMED_AT, OddGPT, Training, curve, evaluation, resumed
from workers.host_link.failures import explain
from workers.state_files.safetensors_files import read
from workers.strategies import RankPlace, SingleStrategy

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

STAGES = ("1", "2", "3")


def two_or_three(rank: BareRank) -> dict[str, Any]:
    """All that these tests look at; less of it with three ranks."""
    ways = ["ddp", "1", "2", "3"] if rank.world == 2 else ["ddp", "3"]
    found: dict[str, Any] = {"whole": {way: curve(Training, rank, way) for way in ways}}
    pairs = [(way, way) for way in ways if way != "ddp"]
    if rank.world == 2:
        pairs += [("fsdp", "ddp"), ("2", "1"), ("ddp", "3")]
        found["accumulated"] = {way: accumulated(rank, way) for way in ("ddp", "2", "3")}
        found["part_alone"] = part_alone(rank)
        found["half"] = {name: half_precision(rank, name) for name in ("bf16", "fp16")}
    found["resumed"] = {f"{way} from {by}": resumed(Training, rank, way, by) for way, by in pairs}
    return found


def accumulated(rank: BareRank, way: str) -> list[float]:
    with Training.on(rank, way, clip=0.5) as training:
        return training.run(0, 12, micro=2)


def half_precision(rank: BareRank, precision: str) -> dict[str, Any]:
    """A short run in stage 3; in fp16 one rank's gradient overflows at one step."""
    with Training.on(rank, "3", precision=precision, clip=1.0) as training:
        losses = training.run(0, 10)
        before, scale = training.digest(buffers=False), training.precision.scaler.get_scale()
        if precision == "fp16":
            training.run(10, 11, spoilt=10)
        return {
            "losses": losses,
            "skipped": training.digest(buffers=False) == before,
            "norm_finite": bool(torch.isfinite(training.norm)),
            "scales": [scale, training.precision.scaler.get_scale()],
            "masters": sorted({str(p.dtype) for p in training.model.parameters()}),
            "continued": training.run(11, 14),
        }


def part_alone(rank: BareRank) -> str:
    """The title of the error for a recipe that uses a layer without calling the model around it."""
    with Training.on(rank, "3") as training:
        try:
            training.model.blocks[0].up(torch.ones(1, 32))
        except RuntimeError as error:
            return explain(error, "cpu").title
    return "nothing"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("two")


@pytest.fixture(scope="module")
def two(folder: Path) -> list[dict[str, Any]]:
    return run_ranks(two_or_three, 2, folder)


def test_every_stage_trains_what_ddp_trains_bit_for_bit(two: list[dict[str, Any]]) -> None:
    """On two ranks: a sum of two numbers does not depend on who adds them."""
    ddp = two[0]["whole"]["ddp"]
    assert ddp["losses"][-1] < ddp["losses"][0] - 1.5, "it learns"
    assert len(ddp["losses"]) == 40
    for stage in STAGES:
        assert two[0]["whole"][stage]["losses"] == two[1]["whole"][stage]["losses"] == ddp["losses"]
        assert two[0]["whole"][stage]["digest"] == ddp["digest"]


def test_clipped_and_in_two_micro_batches_they_differ_by_rounding_only(two: list[dict[str, Any]]) -> None:
    """A norm is summed up by shard, and each micro-batch's gradient is shared out before the next is added."""
    curves = two[0]["accumulated"]
    for stage in ("2", "3"):
        assert max(abs(a - b) for a, b in zip(curves[stage], curves["ddp"], strict=True)) <= 1e-5


def test_measured_bytes_prove_what_is_sharded(two: list[dict[str, Any]]) -> None:
    whole = two[0]["whole"]["ddp"]["bytes"]
    sharded = {
        "1": {"optimizer"},
        "2": {"optimizer", "gradients", "weights"},
        "3": {"optimizer", "gradients", "weights"},
    }
    for stage, kinds in sharded.items():
        for kind, size in whole.items():
            held = [rank["whole"][stage]["bytes"][kind] for rank in two]
            if kind in kinds:  # within one row of the widest tensor, and moments of what one rank holds alone
                assert sum(held) == pytest.approx(size, rel=0.01)
                assert max(held) < 0.52 * size
            else:
                assert held == [size, size]


def test_stopped_and_resumed_each_stage_goes_on_bit_for_bit(two: list[dict[str, Any]]) -> None:
    for stage in STAGES:
        whole, again = two[0]["whole"][stage], two[0]["resumed"][f"{stage} from {stage}"]
        assert again["losses"] == whole["losses"][RESUMED_AT:]
        assert again["digest"] == whole["digest"]


@pytest.mark.parametrize("change", ["fsdp from ddp", "2 from 1", "ddp from 3"])
def test_one_mode_takes_up_what_another_wrote(two: list[dict[str, Any]], change: str) -> None:
    whole, again = two[0]["whole"]["ddp"], two[0]["resumed"][change]
    assert again["losses"] == whole["losses"][RESUMED_AT:]
    assert again["digest"] == whole["digest"]


def test_evaluation_and_sampling_need_all_ranks_and_say_the_same(two: list[dict[str, Any]]) -> None:
    """Five held-out samples on two ranks, and one: their forward passes are not equal in number by themselves."""
    ddp = two[0]["whole"]["ddp"]
    for stage in STAGES:
        for rank in two:
            found = rank["whole"][stage]
            assert found["val_losses"] == ddp["val_losses"]
            assert found["untouched"]
        assert two[0]["whole"][stage]["text"] == ddp["text"]
    for stage in ("2", "3"):
        assert two[1]["whole"][stage]["text"] == ddp["text"]


@pytest.mark.parametrize("stage", STAGES)
def test_the_exported_weights_are_a_plain_models(two: list[dict[str, Any]], folder: Path, stage: str) -> None:
    target = folder / f"model-{stage}.safetensors"
    shards = sorted((folder / f"{stage}-end").glob("weights*.safetensors"))
    assert len(shards) == (1 if stage == "1" else 2)
    export_weights(shards, target)
    assert target.read_bytes() == (folder / "ddp-end" / "weights.safetensors").read_bytes()
    assert _plain_loss(target) == pytest.approx(two[0]["whole"][stage]["val_losses"][0], rel=1e-6)


def test_half_precision_keeps_whole_masters_and_an_overflow_on_one_rank_skips_the_step_on_all(
    two: list[dict[str, Any]],
) -> None:
    reference = two[0]["whole"]["ddp"]["losses"]
    for rank in two:
        for name, found in rank["half"].items():
            assert found["masters"] == ["torch.float32"]
            assert max(abs(a - b) for a, b in zip(found["losses"], reference[:10], strict=True)) < 0.2
            assert found["continued"] == two[0]["half"][name]["continued"]
            assert found["continued"][-1] < found["losses"][0] - 1.0
        overflow = rank["half"]["fp16"]
        assert overflow["skipped"] and not overflow["norm_finite"]
        assert overflow["scales"] == [65536.0, 32768.0]


def test_a_layer_used_without_its_model_is_said_in_words(two: list[dict[str, Any]]) -> None:
    assert [rank["part_alone"] for rank in two] == ["A part of the model was called directly"] * 2


@pytest.mark.second_tier
def test_three_ranks_share_what_three_does_not_divide(tmp_path: Path) -> None:
    """61, 32, 16, 5, 2 and 1 rows: some shards are smaller, some are empty."""
    ranks = run_ranks(two_or_three, 3, tmp_path)
    for rank in ranks:
        found = rank["whole"]["3"]
        assert found["losses"] == pytest.approx(rank["whole"]["ddp"]["losses"], abs=1e-4)
        assert found["digest"] == rank["resumed"]["3 from 3"]["digest"] == ranks[0]["whole"]["3"]["digest"]
        assert rank["resumed"]["3 from 3"]["losses"] == found["losses"][RESUMED_AT:]
        assert found["text"] == ranks[0]["whole"]["3"]["text"]
    held = [rank["whole"]["3"]["bytes"]["optimizer"] for rank in ranks]
    whole = ranks[0]["whole"]["ddp"]["bytes"]["optimizer"]
    assert sum(held) == pytest.approx(whole, rel=0.01) and max(held) < 0.36 * whole
    target = tmp_path / "model.safetensors"
    export_weights(sorted((tmp_path / "3-end").glob("weights*.safetensors")), target)
    assert _plain_loss(target) == pytest.approx(ranks[0]["whole"]["3"]["val_losses"][0], rel=1e-6)


def _plain_loss(weights: Path) -> float:
    """The validation loss of a model that knows nothing of ranks, in this process."""
    model = OddGPT()
    model.load_state_dict(read(weights)[0])
    return evaluation().measure(model, SingleStrategy(RankPlace(0, 1, CPU)))[0]
