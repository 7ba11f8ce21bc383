"""Two ranks on one NVIDIA GPU that is shown twice (`tests.helpers.gpu_shown_twice`): modes, NCCL, gloo, faults.

How fast two GPUs are together cannot be seen so; what is computed, sent, saved and taken up again can.
"""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys

import pytest

from core.run_folder.store import RunStore
from tests.helpers.deepspeed_here import needs_deepspeed
from tests.training.gpu.conftest import GpuShell, lines
from tests.training.gpu.test_one_gpu import losses, ranks_of, store_at_step

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

BOTH = ["--devices", "cuda:0,cuda:1"]
MODEL = shlex.split("--seq-len 64 --batch-size 8 --set n_layer=2 --set n_head=4 --set n_embd=64 --set sample_tokens=0")
FIXED = [*MODEL, "--precision", "fp32", "--set", "dropout=0", "--eval-every", "1000", "--lr", "3e-3"]
MODES = {
    "ddp": ["--mode", "ddp"],
    "zero1": ["--mode", "zero", "--zero-stage", "1", "--zero-engine", "torch"],
    "zero2": ["--mode", "zero", "--zero-stage", "2", "--zero-engine", "torch"],
    "zero3": ["--mode", "zero", "--zero-stage", "3", "--zero-engine", "torch"],
    "fsdp": ["--mode", "fsdp"],
    "independent": ["--mode", "independent"],
    "averaged": ["--mode", "independent", "--sync-every", "4"],
}


def mean_losses(lines_of_steps: list[dict[str, float]]) -> dict[int, float]:
    """Over ranks, by step."""
    by_step: dict[int, dict[int, float]] = {}
    for line in lines_of_steps:
        by_step.setdefault(int(line["step"]), {})[int(line["rank"])] = line["loss"]
    return {step: sum(ranks.values()) / len(ranks) for step, ranks in by_step.items()}


@pytest.mark.parametrize("backend", ["nccl", "gloo"])
@pytest.mark.parametrize("mode", list(MODES))
def test_every_mode_trains_and_goes_on(mode: str, backend: str, twice: GpuShell) -> None:
    words = [*BOTH, *FIXED, *MODES[mode], "--backend", backend]
    store, out = twice.train(*words, "--steps", "30")
    twice.run("resume", str(store.dir), "--steps", "60", "--yes")
    curve = mean_losses(lines(store, "step"))
    assert sorted(curve) == list(range(1, 61)), out
    assert curve[60] < 0.8 * curve[1]
    assert {line["rank"] for line in lines(store, "step")} == {0, 1}


@pytest.mark.parametrize("mode", ["ddp", "zero1", "zero2", "zero3", "fsdp"])
def test_two_ranks_compute_what_one_does(mode: str, twice: GpuShell) -> None:
    alone, _ = twice.train("--devices", "cuda:0", *FIXED, "--grad-accum-steps", "2", "--steps", "20")
    together, _ = twice.train(*BOTH, *FIXED, *MODES[mode], "--steps", "20")
    assert mean_losses(lines(together, "step")) == pytest.approx(losses(alone), abs=2e-2)


@pytest.mark.parametrize("exchange", ["shared", "plain", "fp16", "bf16", "powersgd"])
@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_every_gradient_exchange_learns(exchange: str, backend: str, twice: GpuShell) -> None:
    if (exchange, backend) == ("shared", "nccl"):
        pytest.skip("shared memory is gloo's replacement")
    words = ["--mode", "ddp", "--gradient-exchange", exchange, "--backend", backend]
    store, out = twice.train(*BOTH, *FIXED, *words, "--steps", "60")
    curve = mean_losses(lines(store, "step"))
    assert curve[60] < 0.8 * curve[1], out
    launch = lines(store, "gradient_exchange")
    print(launch, out[-2000:])


@needs_deepspeed
@pytest.mark.parametrize("extra", [[], ["--offload-optimizer"]], ids=["", "offload"])
@pytest.mark.parametrize("stage", ["1", "2", "3"])
def test_deepspeed_trains_and_goes_on(stage: str, extra: list[str], twice: GpuShell) -> None:
    words = ["--mode", "zero", "--zero-stage", stage, "--zero-engine", "deepspeed", "--precision", "bf16", *extra]
    store, out = twice.train(*BOTH, *MODEL, *words, "--steps", "20")
    twice.run("resume", str(store.dir), "--steps", "40", "--yes")
    curve = mean_losses(lines(store, "step"))
    assert sorted(curve) == list(range(1, 41)), out
    assert curve[40] < curve[1]


@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_a_killed_rank_takes_the_other_with_it_and_both_go_on(backend: str, twice: GpuShell) -> None:
    words = [*BOTH, *FIXED, "--mode", "ddp", "--backend", backend, "--checkpoint-every-steps", "50"]
    running = twice.start("train", "--dataset-file", "text.txt", *words, "--steps", "1500", "--max-restarts", "3")
    store = store_at_step(twice, 200)
    ranks_of(twice)[1].send_signal(signal.SIGKILL)
    twice.finish(running)
    curve = mean_losses(lines(store, "step"))
    assert sorted(curve) == list(range(1, 1501))
    assert {line["attempt"] for line in lines(store, "step")} == {1, 2}


def test_a_suspended_rank_is_named(twice: GpuShell) -> None:
    words = [*BOTH, *FIXED, "--mode", "ddp", "--backend", "nccl", "--hang-timeout-s", "10", "--hang-policy", "stop"]
    running = twice.start("train", "--dataset-file", "text.txt", *words, "--steps", "100000", "--json")
    store = store_at_step(twice, 100)
    ranks_of(twice)[1].suspend()
    out, error = running.communicate(timeout=200)
    print(out[-3000:], error[-3000:])
    assert running.returncode not in (0, None)
    found = [line for line in lines(store, "alert") if "hang" in json.dumps(line)]
    assert found, out[-3000:]


def test_a_gpu_and_a_cpu_device_train_side_by_side(twice: GpuShell) -> None:
    store, out = twice.train("--devices", "cuda:0,cpu:0", *FIXED, "--mode", "independent", "--steps", "20")
    assert {(line["rank"], line["step"]) for line in lines(store, "step")} >= {(0, 20), (1, 20)}, out


@pytest.mark.parametrize("kind", ["weak", "strong", "comm"])
def test_two_are_measured(kind: str, twice: GpuShell) -> None:
    folder = twice.place / "bench"
    print(twice.run("bench", kind, "--dataset-file", "text.txt", *BOTH, *FIXED, "--out", str(folder)))
    print((folder / "results.csv").read_text(encoding="utf-8"))


def test_the_link_is_measured(twice: GpuShell) -> None:
    print(twice.run("measure", *BOTH))


def test_the_doctor_tries_nccl(twice: GpuShell) -> None:
    print(twice.run("doctor", "--self-test"))


def test_torchrun_starts_both(twice: GpuShell) -> None:
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node=2", "-m", "core", "train"]
    words = ["--dataset-file", "text.txt", *FIXED, "--mode", "ddp", "--strict", "--steps", "20"]
    argv = [sys.executable, *launcher, *words]
    process = subprocess.Popen(
        argv, cwd=twice.place, env=twice.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    )
    out = twice.finish(process)
    (metrics,) = twice.runs.glob("*/metrics.jsonl")
    store = RunStore.open(metrics.parent)
    assert sorted(mean_losses(lines(store, "step"))) == list(range(1, 21)), out
    assert len({line["rank"] for line in lines(store, "step")}) == 2
