"""--world-size, --num-gpus, --cuda-ids and AIOS_DDP_SPAWN, on machines with and without GPUs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.cli.device_request import with_ddp_spawn, with_devices
from core.cli.parser import parse
from core.config.run_config import RunConfig
from core.errors import ConfigError, PreflightError
from core.launch.command_line import TrainRequest, request_from_arguments
from core.machine.devices import Device
from core.machine.platform import Platform
from core.recipes.catalog import get_recipe

pytestmark = pytest.mark.windows

GPUS = [Device(f"GPU-{n}", "cuda", n, "RTX") for n in range(3)]
CPUS = [Device(f"cpu:{n}", "cpu", n, "Processor") for n in range(4)]
CUDA = Platform("linux", "2.13.0+cu130", "13.0", 4)


def asked(*words: str, available: list[Device]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    request = request_from_arguments(parse(["train", *words]))
    config, notes = with_devices(request, available, CPUS, CUDA)
    return config.devices, notes


@pytest.mark.parametrize(
    ("words", "devices"),
    [
        (["--world-size", "2"], ("GPU-0", "GPU-1")),
        (["--num-gpus", "2"], ("GPU-0", "GPU-1")),
        (["--num_gpus", "1"], ("GPU-0",)),
        (["--num_gpus=-1"], ("GPU-0", "GPU-1", "GPU-2")),
        (["--num_gpus", "-1"], ("GPU-0", "GPU-1", "GPU-2")),
        (["--cuda-ids", "2,0", "--world-size", "2"], ("cuda:2", "cuda:0")),
        (["--devices", "cpux2"], ("cpux2",)),
    ],
)
def test_gpus_are_taken_where_there_are_some(words: list[str], devices: tuple[str, ...]) -> None:
    assert asked(*words, available=GPUS) == (devices, ())


@pytest.mark.parametrize(
    ("words", "devices", "note"),
    [
        (["--world-size", "2"], ("cpux2",), ""),
        (["--num-gpus", "2"], ("cpux2",), "--num-gpus 2 requests GPUs"),
        (["--num-gpus", "-1"], ("cpux4",), "--num-gpus -1 requests GPUs"),
        (["--cuda-ids", "0,1", "--world-size", "2"], ("cpux2",), "--cuda-ids 0,1 requests GPUs"),
        (["--cuda-ids", "0"], ("cpu:0",), "trains on one CPU device instead"),
    ],
)
def test_cpu_devices_are_taken_otherwise_and_it_is_said(words: list[str], devices: tuple[str, ...], note: str) -> None:
    found, notes = asked(*words, available=CPUS)
    assert found == devices
    assert note in notes[0] if note else notes == ()
    if note:
        with pytest.raises(PreflightError, match="requests GPUs"):
            asked(*words, "--strict", available=CPUS)


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (["--num-gpus", "4"], "4 devices were requested, but this machine has 3 GPUs"),
        (["--num-gpus", "0"], "requests no GPU"),
        (["--num-gpus", "two"], "num_gpus"),
        (["--num-gpus", "2", "--devices", "cuda:0"], "--num-gpus and --devices are both given"),
        (["--num-gpus", "2", "--cuda-ids", "0"], "--num-gpus and --cuda-ids are both given"),
        (["--num-gpus", "2", "--world-size", "2"], "--num-gpus and --world-size are both given"),
    ],
)
def test_what_contradicts_itself_or_is_too_much_is_refused(words: list[str], cause: str) -> None:
    with pytest.raises(ConfigError, match=cause):
        asked(*words, available=GPUS)


def test_ddp_spawn_is_understood_unless_a_mode_was_chosen() -> None:
    request = TrainRequest(RunConfig(devices=("cpux2",)), get_recipe("minigpt"))
    changed, (note,) = with_ddp_spawn(request, CPUS, {"AIOS_DDP_SPAWN": "1"})
    assert changed.config.mode == "ddp" and "AIOS_DDP_SPAWN=1" in note
    alone = replace(request, config=RunConfig(devices=("cpu:0",)))
    chosen = replace(request, config=RunConfig(devices=("cpux2",), mode="independent"))
    for same, value in ((request, "0"), (request, ""), (alone, "1"), (chosen, "1")):
        assert with_ddp_spawn(same, CPUS, {"AIOS_DDP_SPAWN": value}) == (same, ())
    assert with_ddp_spawn(request, CPUS, {}) == (request, ())


def test_a_lone_number_still_counts_and_it_is_said() -> None:
    devices, (note,) = asked("--devices", "cpu:2", available=CPUS)
    assert devices == ("cpux2",) and "write cpux2 to count" in note
    assert asked("--devices", "cpu:1,cpu:2", available=CPUS) == (("cpu:1", "cpu:2"), ())


def test_episodes_alone_end_a_run() -> None:
    episodes = ["train", "--recipe", "clstm_ppo", "--num_episodes", "20"]
    config = request_from_arguments(parse(episodes)).config
    assert config.options["num_episodes"] == 20 and (config.epoch_limit or 0) > 1000
    assert request_from_arguments(parse([*episodes, "--epochs", "2"])).config.epochs == 2
    with pytest.raises(ConfigError, match="--num-episodes is given, but the recipe MiniGPT has no such setting"):
        request_from_arguments(parse(["train", "--num-episodes", "20"]))
