"""fp16 and bf16: what overflows anywhere is left out everywhere, the scale recovers, is told, and is resumed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="trains for real")

from core.checkpoints.store import CheckpointStore  # noqa: E402
from tests.helpers.hosted_run import ROOT, host, lines, make_run, write_text  # noqa: E402
from tests.helpers.rank_processes import run_rank_processes  # noqa: E402
from tests.training.workers.precision_rank import MODES, OVERFLOW, SCALE, STEPS, fp16, train  # noqa: E402
from workers.optim.precision import Precision, SkippedSteps, agreed  # noqa: E402
from workers.strategies import RankPlace, SingleStrategy  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
CPU = torch.device("cpu")


def test_an_overflow_on_one_rank_leaves_the_step_out_on_all(tmp_path: Path) -> None:
    first, second = run_rank_processes("tests.training.workers.precision_rank", 2, tmp_path)
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


def test_master_weights_and_gradients_stay_in_fp32() -> None:
    model = torch.nn.Linear(4, 4)
    precision = Precision("fp16", CPU)
    with precision.forward():
        out = model(torch.randn(2, 4))
        assert out.dtype == torch.float16
    out.float().sum().backward()
    assert model.weight.dtype == torch.float32
    assert model.weight.grad is not None and model.weight.grad.dtype == torch.float32


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


def test_many_steps_left_out_in_a_row_are_told_and_end_the_run() -> None:
    skipped = SkippedSteps(Precision("fp16", CPU), CPU)
    good, bad = torch.tensor(1.0), torch.tensor(float("nan"))
    answers = [skipped.note(step, bad if step > 12 else good) for step in range(1, 71)]
    assert [step for step, answer in enumerate(answers, 1) if answer == "alert"] == [40]
    assert [step for step, answer in enumerate(answers, 1) if answer == "hopeless"] == [70]
    assert [skipped.note(step, good) for step in range(71, 81)] == [None] * 10
    quiet = SkippedSteps(Precision("bf16", CPU), CPU)
    assert [quiet.note(step, bad) for step in range(1, 101)] == [None] * 100
