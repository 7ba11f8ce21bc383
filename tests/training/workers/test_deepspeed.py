"""ZeRO stages 1 to 3 under DeepSpeed, on two real processes over gloo: the same model as DDP, less memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.checkpoints.full_weights import export_weights
from tests.helpers.deepspeed_here import needs_deepspeed
from tests.helpers.rank_processes import run_rank_processes

torch = pytest.importorskip("torch", reason="trains for real")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(240), needs_deepspeed]

STAGES = ("1", "2", "3")
RESUMED_AT = 30


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
        found = run_rank_processes("tests.training.workers.deepspeed_rank", 2, folder)
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
    from tests.training.workers.sharded_rank import evaluation, make_model
    from workers.state_files.safetensors_files import read
    from workers.strategies import RankPlace, SingleStrategy

    target = folder / f"model-{stage}.safetensors"
    export_weights(sorted((folder / f"{stage}-end").glob("weights*.safetensors")), target)
    if stage != "3":
        assert target.read_bytes() == (folder / "ddp-end" / "weights.safetensors").read_bytes()
    model = make_model()
    model.load_state_dict(read(target)[0])
    plain = evaluation().measure(model, SingleStrategy(RankPlace(0, 1, torch.device("cpu"))))
    assert plain == pytest.approx(two[0]["whole"][stage]["val_losses"][0], rel=1e-6)


def test_bf16_keeps_whole_masters(two: list[dict[str, Any]]) -> None:
    """DeepSpeed's weights are bf16, DDP's fp32 with a forward pass in bf16, so the curves are near, not equal."""
    ddp = two[0]["bf16"]["ddp"]["losses"]
    for stage in STAGES:
        found = two[0]["bf16"][stage]
        assert found["masters"] == ["torch.float32"]
        assert _apart(found["losses"], ddp) < 0.1
        assert found["losses"] == two[1]["bf16"][stage]["losses"]


def test_the_loss_scale_that_is_charted_and_saved_is_deepspeeds(two: list[dict[str, Any]]) -> None:
    """It grows after some steps in a row without overflow, also when a resume lies between them."""
    high, low = [2.0**16] * 2, [2.0**15] * 2
    for rank in two:
        assert rank["scales"]["followed"] == [high, low, low, low, low, high]
        assert rank["scales"]["resumed"] == [low, high]


def _apart(one: list[float], other: list[float]) -> float:
    return max(abs(a - b) for a, b in zip(one, other, strict=True))
