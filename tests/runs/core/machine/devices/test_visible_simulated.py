"""CUDA_VISIBLE_DEVICES on the command line of a machine with two unlike GPUs."""

from __future__ import annotations

import json
from pathlib import Path
from subprocess import CompletedProcess

from core.errors import ConfigError
from tests.helpers.nvml_sim import NEEDS_SIMULATOR, pretend_cuda_torch, with_gpus

pytestmark = [*NEEDS_SIMULATOR]

ADA, CARD = "GPU-6ada6000-1111-4aaa-8aaa-0000000000a1", "GPU-40904090-2222-4bbb-8bbb-0000000000b2"


def rankdeck(folder: Path, *words: str, **environment: str) -> CompletedProcess[str]:
    """A command, with a torch that looks like a CUDA build."""
    env = {**environment, **pretend_cuda_torch(folder / "torch"), "RANKDECK_HOME": str(folder / "runs")}
    return with_gpus("two_workstation", ["-m", "core", *words], env=env)


def test_devices_lists_hidden_gpus_as_hidden(tmp_path: Path) -> None:
    visible = {"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    lines = rankdeck(tmp_path, "devices", **visible).stdout.splitlines()
    assert lines[1].startswith("cuda:0  NVIDIA GeForce RTX 4090") and lines[2].startswith("–       NVIDIA RTX 6000")
    listed = json.loads(rankdeck(tmp_path, "devices", "--json", **visible).stdout)["devices"]
    assert [(device["uuid"], device["hidden_by"]) for device in listed] == [
        (CARD, ""),
        (ADA, "CUDA_VISIBLE_DEVICES=1"),
    ]


def test_train_refuses_a_hidden_gpu_before_the_start(tmp_path: Path) -> None:
    done = rankdeck(tmp_path, "train", "--devices", ADA[:8], CUDA_VISIBLE_DEVICES=CARD)
    assert done.returncode == ConfigError.exit_code
    cause = done.stderr.splitlines()[1]
    assert ADA[:8] in cause and f"hidden by CUDA_VISIBLE_DEVICES={CARD}" in cause
    assert not (tmp_path / "runs").exists()


def test_world_size_counts_visible_gpus(tmp_path: Path) -> None:
    done = rankdeck(tmp_path, "train", "--world-size", "2", CUDA_VISIBLE_DEVICES=CARD)
    assert done.returncode == ConfigError.exit_code
    assert f"CUDA_VISIBLE_DEVICES={CARD} leaves 1 GPU" in done.stderr


def test_numbers_in_an_unknown_order_are_refused(tmp_path: Path) -> None:
    done = rankdeck(tmp_path, "train", CUDA_VISIBLE_DEVICES="1")
    assert done.returncode == ConfigError.exit_code and "CUDA_DEVICE_ORDER=PCI_BUS_ID" in done.stderr


def test_the_doctor_counts_hidden_gpus(tmp_path: Path) -> None:
    said = rankdeck(tmp_path, "doctor", CUDA_VISIBLE_DEVICES=CARD).stdout
    assert f"RTX 4090; driver 581.57. CUDA_VISIBLE_DEVICES={CARD} hides 1 of 2." in said
    assert 'CUDA_VISIBLE_DEVICES="" hides 2 of 2.' in rankdeck(tmp_path, "doctor", CUDA_VISIBLE_DEVICES="").stdout
