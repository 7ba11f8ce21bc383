"""The launch plan as a table: platform × mode × devices → mode, backend, environment."""

from __future__ import annotations

import os
import platform as system
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple

import pytest

from core.config import RunConfig
from core.config.distributed import DistributedConfig
from core.config.mode import Mode
from core.errors import ConfigError, PreflightError, RankdeckError
from core.launch.mode import choose_devices, choose_mode
from core.launch.plan import LaunchSite, RankCommand, file_url, plan_launch, plan_measuring
from core.launch.resolved import ResolvedRun, resolve_on
from core.machine.devices.device import Device
from core.machine.devices.names import device_label
from core.machine.platform import Platform, rendezvous_folder, this_platform
from core.protocol.rank_context import RankContext
from core.recipes.manifest import Recipe

pytestmark = pytest.mark.windows

LINUX = Platform("linux", "2.13.0+cu128", "12.8", 8)
LINUX_CPU = Platform("linux", "2.13.0+cpu", None, 8)
DEEPSPEED = Platform("linux", "2.13.0+cu128", "12.8", 8, "0.19.8")
WINDOWS = Platform("windows", "2.13.0+cu128", "12.8", 8)
GPUS = [Device(f"GPU-{i}{i}{i}{i}-aa", "cuda", i, f"Card {i}", 24 << 30) for i in range(3)]
SLOTS = [Device(f"cpu:{i}", "cpu", i, f"CPU {i}") for i in range(4)]
FORMER = {"gradient_exchange": "powersgd"}
RECIPE = Recipe("minigpt", "MiniGPT", "", Path("recipes") / "minigpt")


class Planned(NamedTuple):
    """A run and its ranks' processes."""

    run: ResolvedRun
    ranks: tuple[RankCommand, ...]


def plan(
    mode: str,
    devices: Sequence[Device],
    platform: Platform,
    *,
    recipe: Recipe = RECIPE,
    checkpoint: Path | None = None,
    **changes: Any,
) -> Planned:
    run_dir = Path("runs") / "a run"
    config = RunConfig(mode=mode, **changes)
    folder = PureWindowsPath("C:/runs/a run") if platform.name == "windows" else PurePosixPath("/runs/a run")
    site = LaunchSite(run_dir, 2, folder / "rendezvous-2", 4321, "s3cret", checkpoint, "py", host_pid=77)
    run = resolve_on(config, recipe, devices, platform)
    return Planned(run, plan_launch(run, site))


@pytest.mark.parametrize(
    ("platform", "asked", "devices", "mode", "backend", "groups"),
    [
        (LINUX, "auto", GPUS[:1], "single", "", 1),
        (LINUX, "auto", GPUS[:2], "ddp", "nccl", 1),
        (LINUX, "auto", SLOTS[:1], "single", "", 1),
        (LINUX, "auto", SLOTS[:2], "ddp", "gloo", 1),
        (LINUX, "single", GPUS[:1], "single", "", 1),
        (LINUX, "ddp", GPUS, "ddp", "nccl", 1),
        (LINUX, "ddp", SLOTS, "ddp", "gloo", 1),
        (LINUX, "ddp", GPUS[:1], "single", "", 1),
        (LINUX, "independent", GPUS, "independent", "", 3),
        (LINUX, "independent", [GPUS[0], SLOTS[0]], "independent", "", 2),
        (LINUX, "independent", SLOTS[:1], "single", "", 1),
        (LINUX, "zero", GPUS[:2], "zero", "nccl", 1),
        (LINUX, "zero", SLOTS[:2], "zero", "gloo", 1),
        (LINUX, "fsdp", GPUS, "fsdp", "nccl", 1),
        (LINUX, "fsdp", SLOTS[:2], "fsdp", "gloo", 1),
        (LINUX_CPU, "ddp", GPUS[:2], "ddp", "gloo", 1),
        (WINDOWS, "auto", GPUS[:1], "single", "", 1),
        (WINDOWS, "auto", GPUS[:2], "independent", "", 2),
        (WINDOWS, "auto", SLOTS[:2], "independent", "", 2),
        (WINDOWS, "ddp", GPUS[:2], "ddp", "gloo", 1),
        (WINDOWS, "ddp", SLOTS[:2], "ddp", "gloo", 1),
        (WINDOWS, "zero", GPUS[:2], "zero", "gloo", 1),
        (WINDOWS, "fsdp", GPUS[:2], "fsdp", "gloo", 1),
        (WINDOWS, "independent", GPUS[:2], "independent", "", 2),
    ],
)
def test_mode_and_backend(
    platform: Platform, asked: str, devices: list[Device], mode: str, backend: str, groups: int
) -> None:
    made = plan(asked, devices, platform)
    assert (made.run.mode, made.run.backend, made.run.replica_groups) == (mode, backend, groups)
    assert made.run.world_size == len(made.ranks) == len(devices)
    assert choose_mode(RunConfig(mode=asked), devices, platform).mode == mode
    assert bool(made.run.choice.notes) == (mode != asked and not (asked == "auto" and len(devices) == 1))


@pytest.mark.parametrize(
    ("platform", "asked", "devices", "mode", "backend", "words"),
    [
        (LINUX, "independent", GPUS[:2], "independent", "nccl", "every 50 steps by DiLoCo"),
        (LINUX, "independent", [GPUS[0], SLOTS[0]], "independent", "gloo", "every 50 steps by DiLoCo"),
        (WINDOWS, "independent", GPUS[:2], "independent", "gloo", "every 50 steps by DiLoCo"),
        (LINUX, "auto", SLOTS[:2], "independent", "gloo", "No mode was chosen"),
        (LINUX, "independent", SLOTS[:1], "single", "", "nothing to synchronise"),
        (LINUX, "ddp", SLOTS[:2], "ddp", "gloo", "in step at all times"),
    ],
)
def test_ranks_that_meet_now_and_then_are_connected(
    platform: Platform, asked: str, devices: list[Device], mode: str, backend: str, words: str
) -> None:
    made = plan(asked, devices, platform, sync_every=50)
    assert (made.run.mode, made.run.backend) == (mode, backend)
    assert made.run.replica_groups == (len(devices) if mode == "independent" else 1)
    assert words in " ".join(made.run.choice.notes)
    assert all(bool(RankContext.from_env(rank.env).rendezvous) == bool(backend) for rank in made.ranks)


@pytest.mark.parametrize(("mode", "aligned"), [("single", True), ("ddp", True), ("zero", False), ("fsdp", False)])
def test_tensors_of_shards_leave_holes_that_are_found_again(mode: str, aligned: bool) -> None:
    made = plan(mode, SLOTS[: 1 if mode == "single" else 2], LINUX)
    for program in (made.ranks, plan_measuring(made.run, Path("run"), "python", "trial")):
        assert {"THP_MEM_ALLOC_ENABLE" in rank.env for rank in program} == {aligned}
        assert all("MALLOC_TRIM_THRESHOLD_" in rank.env for rank in program)
    figures = plan_measuring(made.run, Path("run"), "python", "figures")
    assert all("THP_MEM_ALLOC_ENABLE" in rank.env for rank in figures), "they serve all modes"


@pytest.mark.skipif(system.libc_ver()[0] != "glibc", reason="these are settings of glibc's allocator")
def test_memory_that_a_cpu_rank_keeps_is_not_asked_for_again() -> None:
    blocks = """
import resource
for _ in range(50):
    held = [b"x" * (4 << 20) for _ in range(4)]
    del held
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""

    def faults(env: Mapping[str, str]) -> int:
        kept = {name: value for name, value in env.items() if name.startswith("MALLOC_")}
        others = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
        return int(subprocess.check_output([sys.executable, "-c", blocks], env={**others, **kept}))

    assert faults(plan("single", SLOTS[:1], LINUX).ranks[0].env) < faults({}) / 10


def test_ranks_cannot_meet_without_gloo() -> None:
    with pytest.raises(PreflightError, match="without gloo"):
        plan("independent", GPUS[:2], Platform("windows", "2.9.1", "12.8", 8), sync_every=50)


def test_mode_single_takes_the_first_of_all_devices_and_says_so() -> None:
    devices, (note,) = choose_devices(("auto",), Mode.SINGLE, GPUS, LINUX)
    assert devices == (GPUS[0],)
    assert device_label(GPUS[0]) in note and "the other 2 stay free" in note
    assert choose_mode(RunConfig(mode="single"), devices, LINUX).mode == "single"


def test_devices_that_were_named_are_all_meant() -> None:
    assert choose_devices(("cuda:0", "cuda:1"), Mode.SINGLE, GPUS, LINUX) == (tuple(GPUS[:2]), ())
    assert choose_devices(("cuda:1",), Mode.SINGLE, GPUS, LINUX) == ((GPUS[1],), ())
    assert choose_devices(("auto",), Mode.DDP, GPUS, LINUX) == (tuple(GPUS), ())
    (slot,), notes = choose_devices(("auto",), Mode.SINGLE, [], LINUX)
    assert (slot.uuid, notes) == ("cpu:0", ())


@pytest.mark.parametrize(
    ("platform", "changes", "devices", "error", "words"),
    [
        (LINUX, {"mode": "ddp"}, [], ConfigError, "No device"),
        (LINUX, {"mode": "independent"}, [], ConfigError, "No device"),
        (LINUX, {"mode": "single"}, GPUS[:2], ConfigError, "2 were chosen"),
        (LINUX, {"mode": "ddp"}, [GPUS[0], SLOTS[0]], ConfigError, "one kind"),
        (LINUX, {"mode": "fsdp"}, [GPUS[0], SLOTS[0]], ConfigError, "one kind"),
        (LINUX, {"mode": "zero"}, SLOTS[:1], ConfigError, "ZeRO stage 1 shares .* only one was chosen"),
        (WINDOWS, {"mode": "zero", "zero_stage": 3}, GPUS[:1], ConfigError, "ZeRO stage 3 shares"),
        (LINUX, {"mode": "fsdp"}, GPUS[:1], ConfigError, "Mode fsdp shares .* only one was chosen"),
        (LINUX, {"mode": "fsdp", "zero_engine": "deepspeed"}, GPUS[:2], ConfigError, "PyTorch's own"),
        (LINUX, {"mode": "zero", "zero_engine": "deepspeed"}, GPUS[:2], PreflightError, "not installed"),
        (LINUX, {"mode": "zero", "zero_engine": "torch", "offload_optimizer": True}, GPUS[:2], ConfigError, "stage 1"),
        (LINUX, {"mode": "zero", "zero_stage": 2, "offload_parameters": True}, GPUS[:2], ConfigError, "whole weights"),
        (DEEPSPEED, {"mode": "zero", "offload_parameters": True}, GPUS[:2], ConfigError, "whole weights"),
    ],
)
def test_what_cannot_be_run_is_refused_in_words(
    platform: Platform, changes: dict[str, Any], devices: list[Device], error: type[RankdeckError], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        choose_mode(RunConfig(**changes), devices, platform)
    assert caught.value.exit_code == (3 if error is PreflightError else 2)
    assert caught.value.next_step


@pytest.mark.parametrize(
    ("changes", "deepspeed", "engine"),
    [
        ({"mode": "ddp"}, "0.19.8", ""),
        ({"mode": "zero"}, None, "torch"),
        ({"mode": "zero", "zero_stage": 3}, "0.19.8", "deepspeed"),
        ({"mode": "zero", "zero_engine": "deepspeed"}, "0.19.8", "deepspeed"),
        ({"mode": "zero", "zero_engine": "torch"}, "0.19.8", "torch"),
        ({"mode": "fsdp"}, "0.19.8", "torch"),
    ],
)
def test_the_engine_is_known_before_a_rank_starts(changes: dict[str, Any], deepspeed: str | None, engine: str) -> None:
    platform = Platform("linux", "2.13.0", None, 8, deepspeed)
    made = plan(changes.pop("mode"), SLOTS[:2], platform, **changes)
    assert made.run.choice.engine == engine
    assert {RankContext.from_env(rank.env).engine for rank in made.ranks} == {engine}


@pytest.mark.parametrize(
    ("changes", "deepspeed", "note"),
    [
        ({"zero_stage": 2}, "0.19.8", "ZeRO stage 2 by DeepSpeed 0.19.8 (installed)."),
        ({"zero_stage": 1, "zero_engine": "deepspeed"}, "unknown", "ZeRO stage 1 by DeepSpeed (chosen)."),
        ({"zero_stage": 2}, None, "ZeRO stage 2 by PyTorch's own engine: DeepSpeed is not installed."),
        ({"zero_stage": 3, "zero_engine": "torch"}, "0.19.8", "ZeRO stage 3 by PyTorch's own engine (chosen)."),
        (
            {"zero_stage": 1, "precision": "fp16"},
            "0.19.8",
            "ZeRO stage 1 by PyTorch's own engine: DeepSpeed is not used in fp16.",
        ),
        ({"mode": "fsdp"}, "0.19.8", ""),
        ({"mode": "ddp"}, "0.19.8", ""),
    ],
)
def test_a_zero_run_says_which_engine_it_took_and_why(
    changes: dict[str, Any], deepspeed: str | None, note: str
) -> None:
    platform = Platform("linux", "2.13.0", None, 8, deepspeed)
    made = plan(changes.pop("mode", "zero"), SLOTS[:2], platform, **changes)
    assert made.run.choice.engine_note == note


def test_what_offload_of_the_optimizer_means_with_pytorch_is_said() -> None:
    made = plan("fsdp", GPUS[:2], LINUX, offload_optimizer=True)
    assert any("weights on the CPU too" in note for note in made.run.choice.notes)
    assert plan("fsdp", GPUS[:2], LINUX, offload_optimizer=True, offload_parameters=True).run.choice.notes == ()


@pytest.mark.parametrize("version", ["2.8.0", "2.8.0+cu128", "2.9.1+cpu", "2.10.0"])
@pytest.mark.parametrize("mode", ["ddp", "zero", "fsdp"])
def test_torch_for_windows_without_gloo_is_refused_where_gloo_is_needed(mode: str, version: str) -> None:
    windows = Platform("windows", version, "12.8", 8)
    with pytest.raises(PreflightError, match=r"2\.13\.0") as caught:
        plan(mode, GPUS[:2], windows)
    assert caught.value.exit_code == 3
    assert version in caught.value.cause
    assert plan("independent", GPUS[:2], windows).run.mode == "independent"
    assert plan("auto", GPUS[:1], windows).run.mode == "single"
    assert plan(mode, SLOTS[:2], Platform("linux", version, None, 8)).run.backend == "gloo"


@pytest.mark.parametrize("version", ["2.7.1", "2.11.0+cu128", "2.13.0", "2.15.0", "3.0.0"])
def test_torch_for_windows_with_gloo_is_taken(version: str) -> None:
    assert plan("ddp", GPUS[:2], Platform("windows", version, "12.8", 8)).run.backend == "gloo"


def test_a_recipe_is_trained_only_in_the_modes_it_has() -> None:
    recipe = Recipe("one", "One", "", Path("one"), modes=("single",))
    assert plan("auto", SLOTS[:1], LINUX, recipe=recipe).run.mode == "single"
    with pytest.raises(ConfigError, match="One does not support DDP"):
        plan("auto", SLOTS[:2], LINUX, recipe=recipe)


def test_each_gpu_rank_sees_its_own_card_by_uuid() -> None:
    chosen = [GPUS[2], GPUS[0]]
    for platform in (LINUX, WINDOWS):
        made = plan("ddp", chosen, platform)
        assert [rank.env["CUDA_VISIBLE_DEVICES"] for rank in made.ranks] == [gpu.uuid for gpu in chosen]
        assert [rank.device for rank in made.ranks] == chosen
        assert {rank.env["CUDA_DEVICE_ORDER"] for rank in made.ranks} == {"PCI_BUS_ID"}
        assert {RankContext.from_env(rank.env).device for rank in made.ranks} == {"cuda:0"}


def test_what_every_rank_is_told() -> None:
    made = plan("ddp", SLOTS[:2], LINUX, checkpoint=Path("runs") / "a run" / "checkpoints" / "4")
    for number, rank in enumerate(made.ranks):
        assert rank.rank == number
        assert rank.argv == ("py", "-m", "workers.programs.rank_main")
        assert rank.log == Path("runs") / "a run" / "logs" / f"rank{number}.log"
        assert (rank.env["RANK"], rank.env["WORLD_SIZE"], rank.env["MASTER_ADDR"]) == (str(number), "2", "127.0.0.1")
        assert "MASTER_PORT" not in rank.env
        environment = rank.environment({"PYTHONPATH": str(Path("theirs").absolute())})
        assert environment["PYTHONUNBUFFERED"] == environment["PYTHONUTF8"] == "1"
        ours, _, theirs = environment["PYTHONPATH"].split(os.pathsep)
        assert (Path(ours) / "core" / "client.py").is_file() and Path(theirs) == Path("theirs").absolute()
        context = RankContext.from_env(rank.env)
        assert context == RankContext(
            rank=number,
            world_size=2,
            device="cpu",
            mode="ddp",
            backend="gloo",
            rendezvous="file:///runs/a run/rendezvous-2",
            threads=4,
            run_dir=Path("runs") / "a run",
            recipe_dir=RECIPE.folder,
            attempt=2,
            micro_batch=8,
            grad_accum_steps=1,
            checkpoint=Path("runs") / "a run" / "checkpoints" / "4",
            port=4321,
            token="s3cret",
            host_pid=77,
        )
        assert "s3cret" not in repr(context)
        assert {name for name in rank.env if name.startswith("RANKDECK")} == {"RANKDECK_RANK", "RANKDECK_DISTRIBUTED"}
        assert DistributedConfig.from_env(rank.env) == DistributedConfig(
            2, number, number, devices_per_node=2, backend="gloo"
        )
    assert RankContext.from_env(plan("single", SLOTS[:1], LINUX).ranks[0].env).checkpoint is None


def test_what_leads_torch_astray_is_not_inherited() -> None:
    inherited = {
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "KUBERNETES_PORT": "tcp://10.0.0.1:443",
        "DOCKER_HOST": "tcp://localhost",
        "MASTER_PORT": "29500",
        "TORCHELASTIC_USE_AGENT_STORE": "True",
        "RANK": "5",
        "PATH": "/bin",
        "Path": "C:\\Windows",
        "RANKDECK_FAULT": "mid_chunk",
    }
    command = plan("ddp", SLOTS[:2], WINDOWS).ranks[1]
    environment = command.environment(inherited)
    assert {name: environment.get(name) for name in inherited} == {
        **dict.fromkeys(inherited),
        "RANK": "1",
        "PATH": "/bin",
        "Path": "C:\\Windows",
        "RANKDECK_FAULT": "mid_chunk",
    }
    assert command.env.items() <= environment.items()


@pytest.mark.parametrize("path", ["C:\\Users\\Jörg Ö\\my runs\\r#1 100%\\x", "D:\\runs\\x"])
def test_a_windows_file_address_is_read_back_by_the_rule_torch_uses(path: str) -> None:
    url = file_url(PureWindowsPath(path), WINDOWS)
    assert url.startswith("file:///")
    parts = urllib.parse.urlparse(url)
    assert not parts.fragment
    assert urllib.parse.unquote(parts.netloc + parts.path).lstrip("/").replace("/", "\\") == path


def test_the_rendezvous_folder_is_one_that_torch_can_open(tmp_path: Path) -> None:
    plain, hard = tmp_path / "a run", tmp_path / "lauf #1 für ✓"
    plain.mkdir()
    hard.mkdir()
    assert rendezvous_folder(plain) == plain
    found = rendezvous_folder(hard)
    assert found != hard
    assert found.is_dir()
    (found / "rendezvous-test-only").touch()
    (found / "rendezvous-test-only").unlink()


@pytest.mark.parametrize(
    ("changes", "is_noted"),
    [({"mode": "ddp"}, True), ({"mode": "independent"}, False), ({"mode": "zero", "zero_stage": 3}, False)],
)
def test_a_former_choice_is_noted_where_it_had_an_effect(changes: dict[str, Any], is_noted: bool) -> None:
    choice = choose_mode(RunConfig(**{**FORMER, "zero_engine": "torch", **changes}), SLOTS[:2], LINUX)
    assert choice.mode == changes["mode"]
    assert any("powersgd is no longer offered" in note for note in choice.notes) == is_noted


def test_this_platform_knows_its_torch_without_importing_it() -> None:
    platform = this_platform()
    assert platform.physical_cores >= 1
    assert platform.torch_version is not None
    assert platform.torch_version[0].isdigit()
    assert platform.has_nccl == (platform.name == "linux" and platform.cuda_build is not None)


@pytest.mark.parametrize("devices", [GPUS[:2], SLOTS[:2]])
def test_ranks_that_make_trials_have_a_runs_environment_and_no_host(devices: Sequence[Device]) -> None:
    planned = plan("ddp", devices, LINUX, env={"MINE": "1"})
    trials = plan_measuring(planned.run, Path("trials"), "py", "trial")
    for rank, trial in zip(planned.ranks, trials, strict=True):
        assert trial.argv == ("py", "-m", "workers.programs.measure_main", "trial")
        own, theirs = trial.environment({}), rank.environment({})
        assert own.keys() == theirs.keys() and own["MINE"] == "1"
        assert {name for name in own if own[name] != theirs[name]} == {"RANKDECK_RANK"}
        context = RankContext.from_env(own)
        assert (context.rank, context.world_size, context.backend) == (rank.rank, 2, planned.run.backend)
        assert (context.port, context.token, context.run_dir) == (0, "", Path("trials"))
