"""Runs on one NVIDIA GPU: precisions, compiled kernels, memory, another device on resume, what its driver tells."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal

import pytest

from core.run_folder.store import RunStore
from tests.helpers.hosted_run import curve, lines
from tests.training.gpu.conftest import MODEL, TEXT, GpuShell

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

ON_GPU = ["--devices", "cuda:0", *MODEL, "--eval-every", "1000", "--lr", "3e-3"]
RECIPES = {
    "minigpt": [*MODEL],
    "actv1": shlex.split("--seq-len 32 --batch-size 8"),
    "clstm_ppo": [],
    "hf_causal_lm": shlex.split("--seq-len 64 --batch-size 4 --set n_layer=2"),
}


def test_the_driver_lists_it(shell: GpuShell) -> None:
    devices = json.loads(shell.run("devices", "--json"))
    gpu = next(device for device in devices["devices"] if device["kind"] == "cuda")
    assert gpu["uuid"].startswith("GPU-") and gpu["memory_bytes"] > 1 << 30
    assert gpu["compute_capability"][0] >= 5


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_it_learns(precision: str, shell: GpuShell) -> None:
    store = shell.train(*ON_GPU, "--steps", "300", "--precision", precision)
    made = curve(store)
    assert sorted(made) == list(range(1, 301))
    assert made[300] < 0.5 * made[1]
    (final,) = [line for line in lines(store, "eval") if line["step"] == 300]
    assert final["val_loss"] < 0.6 * made[1]
    memory = lines(store, "memory")[-1]
    assert 0 < memory["allocated_bytes"] <= memory["reserved_bytes"]
    assert lines(store, "step")[-1]["device_mem_bytes"] > 0


def test_its_figures_are_read_while_it_trains(shell: GpuShell) -> None:
    wide = shlex.split(
        "--seq-len 256 --batch-size 32 --set n_layer=8 --set n_head=8 --set n_embd=512 --set sample_tokens=0"
    )
    store = shell.train("--devices", "cuda:0", *wide, "--steps", "300")
    samples = [line for line in lines(store, "device") if line["uuid"].startswith("GPU-")]
    assert max(sample["utilization_percent"] for sample in samples) > 20
    last = samples[-1]
    assert last["power_w"] > 0 and last["temperature_celsius"] > 0 and last["energy_j"] > samples[0]["energy_j"]
    held = lines(store, "memory")[-1]["reserved_bytes"]
    assert max(sample["memory_used_bytes"] for sample in samples) > held


@pytest.mark.parametrize("recipe", list(RECIPES))
def test_every_recipe_trains(recipe: str, shell: GpuShell) -> None:
    store = shell.train("--recipe", recipe, "--devices", "cuda:0", *RECIPES[recipe], "--steps", "12")
    assert max(line["step"] for line in lines(store, "step")) == 12


def test_compiled_it_learns_the_same(shell: GpuShell) -> None:
    fixed = [*ON_GPU, "--steps", "20", "--precision", "fp32", "--set", "dropout=0"]
    plain = shell.train(*fixed)
    compiled = shell.train(*fixed, "--torch-compile")
    assert curve(compiled) == pytest.approx(curve(plain), abs=2e-2)
    assert compiled.state().state == "finished"


def test_a_micro_batch_that_does_not_fit_is_cut(shell: GpuShell) -> None:
    wide = shlex.split("--seq-len 1024 --set n_layer=8 --set n_head=8 --set n_embd=2048 --set sample_tokens=0")
    batch = ["--batch-size", "512", "--steps", "2", "--eval-every", "1000", "--precision", "bf16"]
    store = shell.train("--devices", "cuda:0", *wide, *batch)
    assert sorted(curve(store)) == [1, 2]
    assert 0 < lines(store, "step")[-1]["micro_batch"] < 512


@pytest.mark.parametrize(("first", "second"), [("cuda:0", "cpu:0"), ("cpu:0", "cuda:0"), ("cuda:0", "cuda:0")])
def test_a_run_is_resumed_on_another_device(first: str, second: str, shell: GpuShell) -> None:
    begun = shell.train("--devices", first, *MODEL, "--precision", "fp32", "--set", "dropout=0", "--steps", "20")
    copy = shell.runs / "the same run"
    shutil.copytree(begun.dir, copy)
    shell.run("resume", str(begun.dir), "--devices", second, "--steps", "40", "--yes")
    shell.run("resume", str(copy), "--devices", first, "--steps", "40", "--yes")
    made = curve(begun)
    assert sorted(made) == list(range(1, 41))
    assert made == pytest.approx(curve(RunStore.open(copy)), abs=2e-2)


def test_a_killed_rank_continues_from_its_checkpoint(shell: GpuShell) -> None:
    words = [*ON_GPU, "--steps", "3000", "--checkpoint-every-steps", "50", "--max-restarts", "3", "--json"]
    running = shell.start("train", "--dataset-file", TEXT, *words)
    store = shell.at_step(200)
    (rank,) = shell.ranks()
    rank.send_signal(signal.SIGKILL)
    shell.end(running)
    made = curve(store)
    assert sorted(made) == list(range(1, 3001))
    assert len({line.get("attempt") for line in lines(store, "step")}) == 2


@pytest.mark.parametrize("recipe", ["minigpt", "hf_causal_lm"])
def test_the_estimate_of_memory_is_near_the_truth(recipe: str, shell: GpuShell) -> None:
    wide = shlex.split(
        "--seq-len 512 --batch-size 16 --set n_layer=6 --set n_head=8 --set n_embd=512 --set sample_tokens=0"
    )
    words = ["--recipe", recipe, "--devices", "cuda:0", *wide, "--precision", "bf16"]
    estimate = json.loads(shell.run("estimate", "--dataset-file", TEXT, *words, "--steps", "30", "--json"))
    store = shell.train(*words, "--steps", "30")
    peak = lines(store, "memory")[-1]
    (single,) = [mode for mode in estimate["modes"] if mode["mode"] == "single"]
    (device,) = single["devices"]
    assert device["framework_bytes"] > 100 << 20, "the CUDA context"
    assert device["total_bytes"] - device["framework_bytes"] == pytest.approx(peak["reserved_bytes"], rel=0.25)


def test_the_doctor_and_the_self_tests_pass(shell: GpuShell) -> None:
    found = shell.run("doctor", "--self-test")
    assert re.search(r"^OK +Computing on GPU 0.* bf16 ", found, re.MULTILINE), found
    assert not re.search(r"^FAIL", found, re.MULTILINE), found


def test_settings_are_tried_on_it(shell: GpuShell) -> None:
    found = shell.run("tune", "--dataset-file", TEXT, *ON_GPU, "--seconds", "20")
    assert len(re.findall(r" measured$", found, re.MULTILINE)) >= 2, found


SCRIPT = """
import os, sys, torch
import rankdeck
assert torch.cuda.is_available()
device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
net = torch.nn.Linear(64, 1).to(device)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for step in range(1, 51):
    x = torch.randn(256, 64, device=device)
    loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    rankdeck.log(step=step, loss=loss.item())
"""


def test_a_script_of_the_users_own_trains(shell: GpuShell) -> None:
    (shell.place / "own.py").write_text(SCRIPT, encoding="utf-8")
    shell.run("run", "--devices", "cuda:0", "own.py")
    (metrics,) = shell.runs.glob("*/metrics.jsonl")
    assert max(curve(RunStore.open(metrics.parent))) == 50


def test_it_is_listed_with_the_run_that_trains_on_it(shell: GpuShell) -> None:
    running = shell.start("train", "--dataset-file", TEXT, *ON_GPU, "--steps", "100000")
    store = shell.at_step(50)
    seen = json.loads(shell.run("devices", "--json"))
    shell.run("stop", str(store.dir))
    shell.end(running)
    (gpu,) = [device for device in seen["devices"] if device["kind"] == "cuda"]
    (process,) = [process for process in gpu["sample"]["processes"] if process["run"]]
    assert store.state().name in process["run"] and process["memory_bytes"] > 100 << 20
