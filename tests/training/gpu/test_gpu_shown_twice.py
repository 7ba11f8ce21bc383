"""Two ranks on one NVIDIA GPU that is shown twice (`tests.helpers.gpu_shown_twice`): modes, NCCL, gloo, faults.

How fast two GPUs are together cannot be seen so; what is computed, sent, saved and taken up again can.
"""

from __future__ import annotations

import re
import signal

import pytest

from tests.helpers.deepspeed_here import needs_deepspeed
from tests.helpers.hosted_run import curve, lines
from tests.training.gpu.conftest import MODEL, TEXT, GpuShell

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

BOTH = ["--devices", "cuda:0,cuda:1"]
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


@pytest.mark.parametrize("backend", ["nccl", "gloo"])
@pytest.mark.parametrize("mode", list(MODES))
def test_every_mode_trains_and_is_resumed(mode: str, backend: str, twice: GpuShell) -> None:
    words = [*BOTH, *FIXED, *MODES[mode], "--backend", backend]
    store = twice.train(*words, "--steps", "30")
    twice.run("resume", str(store.dir), "--steps", "60", "--yes")
    made = curve(store)
    assert sorted(made) == list(range(1, 61))
    assert made[60] < 0.8 * made[1]
    assert {line["rank"] for line in lines(store, "step")} == {0, 1}


@pytest.mark.parametrize("mode", ["ddp", "zero1", "zero2", "zero3", "fsdp"])
def test_two_ranks_compute_what_one_does(mode: str, twice: GpuShell) -> None:
    alone = twice.train("--devices", "cuda:0", *FIXED, "--grad-accum-steps", "2", "--steps", "20")
    together = twice.train(*BOTH, *FIXED, *MODES[mode], "--steps", "20")
    assert curve(together) == pytest.approx(curve(alone), abs=2e-2)


@pytest.mark.parametrize("exchange", ["shared", "plain"])
@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_every_gradient_exchange_learns(exchange: str, backend: str, twice: GpuShell) -> None:
    if (exchange, backend) == ("shared", "nccl"):
        pytest.skip("shared memory is gloo's replacement")
    words = ["--mode", "ddp", "--gradient-exchange", exchange, "--backend", backend]
    store = twice.train(*BOTH, *FIXED, *words, "--steps", "60")
    made = curve(store)
    assert made[60] < 0.8 * made[1]


@needs_deepspeed
@pytest.mark.parametrize("extra", [[], ["--offload-optimizer"]], ids=["", "offload"])
@pytest.mark.parametrize("stage", ["1", "2", "3"])
def test_deepspeed_trains_and_is_resumed(stage: str, extra: list[str], twice: GpuShell) -> None:
    words = ["--mode", "zero", "--zero-stage", stage, "--zero-engine", "deepspeed", "--precision", "bf16", *extra]
    store = twice.train(*BOTH, *MODEL, *words, "--steps", "20")
    twice.run("resume", str(store.dir), "--steps", "40", "--yes")
    made = curve(store)
    assert sorted(made) == list(range(1, 41))
    assert made[40] < made[1]


@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_a_killed_rank_ends_the_other_and_both_continue(backend: str, twice: GpuShell) -> None:
    words = [*BOTH, *FIXED, "--mode", "ddp", "--backend", backend, "--checkpoint-every-steps", "50"]
    running = twice.start("train", "--dataset-file", TEXT, *words, "--steps", "1500", "--max-restarts", "3")
    store = twice.at_step(200)
    twice.ranks()[1].send_signal(signal.SIGKILL)
    twice.end(running)
    made = curve(store)
    assert sorted(made) == list(range(1, 1501))
    assert {line["attempt"] for line in lines(store, "step")} == {1, 2}


def test_a_suspended_rank_is_named(twice: GpuShell) -> None:
    words = [*BOTH, *FIXED, "--mode", "ddp", "--backend", "nccl", "--hang-timeout-s", "10", "--hang-policy", "stop"]
    running = twice.start("train", "--dataset-file", TEXT, *words, "--steps", "100000", "--json")
    store = twice.at_step(100)
    twice.ranks()[1].suspend()
    twice.end(running, code=1)
    error = store.state().error
    assert error is not None and error["title"] == "GPU 1: The process hangs" and "GPU 0 is at" in error["cause"]


def test_a_gpu_and_a_cpu_device_train_side_by_side(twice: GpuShell) -> None:
    store = twice.train("--devices", "cuda:0,cpu:0", *FIXED, "--mode", "independent", "--steps", "20")
    assert {(line["rank"], line["step"]) for line in lines(store, "step")} >= {(0, 20), (1, 20)}


@pytest.mark.parametrize("kind", ["weak", "strong"])
def test_scaling_to_two_is_measured(kind: str, twice: GpuShell) -> None:
    rows = twice.bench(kind, *BOTH, *FIXED)
    assert [(row["devices"], row["exchange"]) for row in rows] == [(1, None), (2, "nccl")]


def test_every_transport_is_measured(twice: GpuShell) -> None:
    rows = twice.bench("comm", *BOTH, *FIXED)
    assert {row["transport"] for row in rows} >= {"nccl", "gloo", "shared"}


def test_the_doctor_tries_nccl(twice: GpuShell) -> None:
    found = twice.run("doctor", "--self-test")
    assert re.search(r"^OK +NCCL between two GPUs: [\d,]+ MB/s", found, re.MULTILINE), found
    assert not re.search(r"^FAIL", found, re.MULTILINE), found


def test_torchrun_starts_both(twice: GpuShell) -> None:
    words = ["train", "--dataset-file", TEXT, *FIXED, "--mode", "ddp", "--strict", "--steps", "20"]
    twice.end(twice.start(*words, before=["-m", "torch.distributed.run", "--nproc-per-node=2"]))
    store = twice.only_run()
    assert sorted(curve(store)) == list(range(1, 21))
    assert {line["rank"] for line in lines(store, "step")} == {0, 1}
