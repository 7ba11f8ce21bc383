"""Backend, DDP's arguments and settings of one kind of device: refused if impossible, noted if they do nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple

import pytest

from core.config import RunConfig
from core.config.run_config import FIELD_BY_NAME, FIELDS
from core.errors import ConfigError
from core.launch.mode import choose_mode
from core.launch.plan import LaunchSite, RankCommand, plan_launch
from core.launch.preflight import settings_without_effect
from core.launch.resolved import ResolvedRun, resolve_on, trained_run
from core.machine.devices.device import Device
from core.machine.platform import Platform
from core.recipes.catalog import get_recipe
from core.recipes.manifest import Recipe, recipe_defaults
from core.resume.changes import change_lines
from core.resume.planner import CHANGEABLE, plan_resume
from core.run_folder.store import RunStore

pytestmark = pytest.mark.windows

LINUX = Platform("linux", "2.13.0+cu128", "12.8", 8)
LINUX_CPU = Platform("linux", "2.13.0+cpu", None, 8)
WINDOWS = Platform("windows", "2.13.0+cu128", "12.8", 8)
GPUS = [Device(f"GPU-{i}{i}{i}{i}-aa", "cuda", i, f"Card {i}", 24 << 30) for i in range(2)]
SLOTS = [Device(f"cpu:{i}", "cpu", i, f"CPU {i}") for i in range(2)]
RECIPE = Recipe("minigpt", "MiniGPT", "", Path("recipes") / "minigpt")
SCRIPT = dataclasses.replace(RECIPE, name="script", self_contained=True, program="rank.py")


class Planned(NamedTuple):
    """A run and its ranks' processes."""

    run: ResolvedRun
    ranks: tuple[RankCommand, ...]


def plan(devices: Sequence[Device], platform: Platform, recipe: Recipe = RECIPE, **settings: Any) -> Planned:
    config = RunConfig(**{"mode": "ddp", **settings})
    rendezvous = PureWindowsPath("C:/run/x") if platform.name == "windows" else PurePosixPath("/run/x")
    site = LaunchSite(Path("run"), 1, rendezvous, 4321, "s3cret", None, "py", master_port=1)
    run = resolve_on(config, recipe, devices, platform)
    return Planned(run, plan_launch(run, site))


@pytest.mark.parametrize(
    ("devices", "platform", "words"),
    [(SLOTS, LINUX, "CPU devices were chosen"), (GPUS, WINDOWS, "under Linux only"), (GPUS, LINUX_CPU, "without CUDA")],
)
def test_nccl_is_refused_where_it_cannot_be(devices: list[Device], platform: Platform, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        choose_mode(RunConfig(mode="ddp", backend="nccl"), devices, platform)
    assert caught.value.field == "backend" and "auto or gloo" in caught.value.next_step


def test_gloo_connects_gpus_when_asked_to() -> None:
    assert plan(GPUS, LINUX).run.backend == "nccl" == plan(GPUS, LINUX, backend="nccl").run.backend
    asked = plan(GPUS, LINUX, backend="gloo")
    assert asked.run.backend == "gloo" and "NCCL_SOCKET_IFNAME" not in asked.ranks[0].env
    assert plan(GPUS, LINUX, backend="gloo", mode="independent").run.backend == ""
    assert plan(GPUS, LINUX, backend="gloo", mode="independent", sync_every=5).run.backend == "gloo"


def test_variables_reach_every_rank_and_win_over_what_rankdeck_chooses() -> None:
    own = {"NCCL_SOCKET_IFNAME": "eth0", "OMP_NUM_THREADS": "3", "PYTHONHASHSEED": "0"}
    for rank in plan(GPUS, LINUX, env=own).ranks:
        assert own.items() <= rank.environment({"OMP_NUM_THREADS": "9", "PYTHONHASHSEED": "9"}).items()


def test_a_scripts_own_hash_seed_stays() -> None:
    script = plan(SLOTS, LINUX, SCRIPT, seed=7).ranks[0]
    assert script.environment({"PYTHONHASHSEED": "random"})["PYTHONHASHSEED"] == "random"


@pytest.mark.parametrize(
    ("settings", "devices", "words"),
    [
        ({"find_unused_parameters": True, "mode": "fsdp"}, GPUS, "find_unused_parameters has an effect in mode ddp"),
        ({"broadcast_buffers": False, "mode": "independent"}, GPUS, "broadcast_buffers has an effect in mode ddp"),
        ({"backend": "gloo", "mode": "independent"}, GPUS, "backend has an effect only where devices exchange tensors"),
        ({"torch_compile": True}, SLOTS, "torch_compile has an effect under Linux with a C++ compiler"),
    ],
)
def test_what_does_nothing_here_is_noted(settings: dict[str, Any], devices: list[Device], words: str) -> None:
    config = RunConfig(**{"mode": "ddp", **settings})
    (note,) = settings_without_effect(resolve_on(config, RECIPE, devices, LINUX))
    assert words in note


@pytest.mark.parametrize(
    ("settings", "note"),
    [
        ({"zero_stage": 2}, "zero_stage has an effect in zero mode only."),
        ({"offload_optimizer": True}, "offload_optimizer has an effect in zero and fsdp modes only."),
        ({"merge_policy": "none", "mode": "fsdp"}, "merge_policy has an effect in independent mode only."),
        ({"gradient_exchange": "plain", "mode": "fsdp"}, "gradient_exchange has an effect in mode ddp and with"),
        ({"balance": "measured", "mode": "independent"}, "balance has an effect in mode ddp and with"),
    ],
)
def test_a_setting_of_another_mode_is_noted_as_its_declaration_says(settings: dict[str, Any], note: str) -> None:
    config = RunConfig(**{"mode": "ddp", **settings})
    (found,) = settings_without_effect(resolve_on(config, RECIPE, GPUS, LINUX))
    assert found.startswith(note)


def test_what_a_recipe_sets_by_itself_is_not_noted() -> None:
    recipe = dataclasses.replace(RECIPE, defaults={"zero_stage": 2})
    assert settings_without_effect(resolve_on(RunConfig(mode="ddp", zero_stage=2), recipe, GPUS, LINUX)) == ()


def test_of_a_program_only_settings_that_reach_it_are_noted() -> None:
    config = RunConfig(mode="ddp", zero_stage=2, merge_policy="none")
    assert settings_without_effect(resolve_on(config, SCRIPT, GPUS, LINUX)) == ()
    reached = dataclasses.replace(SCRIPT, uses=("merge_policy",))
    (note,) = settings_without_effect(resolve_on(config, reached, GPUS, LINUX))
    assert note.startswith("merge_policy")


@pytest.mark.parametrize(
    ("name", "text", "matters"),
    [
        ("sync_method", "", False),
        ("sync_method", "5", True),
        ("offload_parameters", "3", True),
        ("offload_parameters", "2", False),
        ("deepspeed_config", "torch", False),
        ("deepspeed_config", "auto", True),
        ("lr", "", True),
    ],
)
def test_a_setting_that_needs_another_one(name: str, text: str, matters: bool) -> None:
    spec = FIELD_BY_NAME[name]
    assert spec.matters({spec.when[0]: text} if spec.when[0] else {}) is matters
    assert spec.matters({}), "without the other field nothing speaks against it"


def test_each_setting_names_another_one_that_there_is() -> None:
    assert {spec.when[0] for spec in FIELDS} - {""} <= set(FIELD_BY_NAME)


def test_settings_that_work_are_not_noted() -> None:
    settings = {"find_unused_parameters": True, "broadcast_buffers": False, "backend": "gloo", "balance": "measured"}
    config = RunConfig(mode="ddp", **settings)
    assert settings_without_effect(resolve_on(config, RECIPE, GPUS, LINUX)) == ()


def test_all_of_them_may_change_on_resume_and_values_of_variables_stay_out_of_the_plan(tmp_path: Path) -> None:
    names = {"find_unused_parameters", "broadcast_buffers", "backend", "collective_timeout_s"}
    assert names | {"torch_compile", "env"} <= set(CHANGEABLE)
    text = tmp_path / "text.txt"
    text.write_text("some words\n" * 5000, encoding="utf-8", newline="\n")
    values = {**recipe_defaults(get_recipe("minigpt")), "dataset_file": str(text), "devices": ("cpu:0",)}
    store = RunStore.create(tmp_path, RunConfig(**values, env={"KEPT": "1", "TOKEN": "old secret"}), tmp_path / "run")
    store.write_state(store.stored_state().replace(state="stopped"))
    plan = plan_resume(str(store.dir), tmp_path, {"env": ["TOKEN=new secret"], "backend": "gloo"})
    assert dict(plan.config.env) == {"KEPT": "1", "TOKEN": "new secret"} and plan.config.backend == "gloo"
    before = trained_run(store.config(), get_recipe("minigpt"), "ddp", 2)
    said = change_lines(before, resolve_on(plan.config, get_recipe("minigpt"), SLOTS, LINUX))
    assert "Environment variables: TOKEN changed." in said and "secret" not in " ".join(said)
