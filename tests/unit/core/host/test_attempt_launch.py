"""What a run's `environment.json` says of the machine and of its ranks."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from core.config import RunConfig
from core.host.attempt_launch import describe_environment
from core.launch.plan import RankCommand
from core.machine import packages
from core.machine.devices import Device
from core.machine.platform import Platform
from tests.helpers.resolved_run import resolved_run


def test_versions_devices_and_commands_can_be_read_later(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"torch": "2.13.0", "numpy": None}
    monkeypatch.setattr(packages, "installed_version", versions.get)
    card = Device("GPU-1", "cuda", 0, "A card", 24 << 30)
    slot = Device("cpu:0", "cpu", 0, "A processor")
    command = RankCommand(0, ("python", "-m", "x"), {"SECRET": "1"}, (), Path(), Path(), card)
    machine = Platform("linux", "2.13.0+cu130", "13.0", 6)
    run = replace(resolved_run(RunConfig(), "ddp", 2), devices=(card, slot), backend="nccl")
    said = json.loads(json.dumps(describe_environment(machine, run, [command], "580.65", 3, "spawn")))
    assert said["packages"] == {"torch": "2.13.0"}, "what is not installed is left out"
    assert (said["torch"], said["torch_cuda"], said["driver"], said["cores"]) == ("2.13.0+cu130", "13.0", "580.65", 6)
    assert [device["memory_bytes"] for device in said["devices"]] == [24 << 30, None]
    assert said["ranks"] == [{"rank": 0, "argv": ["python", "-m", "x"], "device": "GPU-1"}]
    assert (said["mode"], said["backend"], said["attempt"]) == ("ddp", "nccl", 3)
    assert "SECRET" not in json.dumps(said), "a run's folder is passed on: no variables"
