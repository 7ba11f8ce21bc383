"""`DistributedConfig`: the same value in the environment and in files, and contradictions refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.config import RunConfig
from core.config.config_file import read_config
from core.config.distributed import ENV_DISTRIBUTED, DistributedConfig, flags_of, laid_under
from core.errors import ConfigError, UsageError

hypothesis = pytest.importorskip("hypothesis", reason="property tests need hypothesis")
st = pytest.importorskip("hypothesis.strategies", reason="property tests need hypothesis")
TWO = DistributedConfig(2, devices_per_node=2)
FULL = DistributedConfig(
    world_size=8,
    rank=5,
    local_rank=1,
    num_nodes=2,
    node_rank=1,
    devices_per_node=4,
    backend="nccl",
    master_addr="10.0.0.1",
    master_port=29500,
    nic="eth0",
    timeout_s=60.0,
    find_unused_parameters=True,
    broadcast_buffers=False,
    gradient_as_bucket_view=False,
    launch_method="torchrun",
    job="a-job",
    restart_count=1,
    max_restarts=3,
)


@pytest.mark.parametrize("suffix", [".toml", ".yaml", ".yml", ".json"])
def test_files_hold_all_of_it(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"verteilt{suffix}"
    path.write_text(FULL.to_text(suffix), encoding="utf-8", newline="\n")
    assert DistributedConfig.from_mapping(read_config(path)).validate() == FULL


def test_the_environment_holds_all_of_it() -> None:
    assert DistributedConfig.from_env(FULL.to_env()) == FULL
    variables = {"RANK": "5", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4"}
    assert FULL.torchrun_variables() == {**variables, "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500"}
    assert DistributedConfig.from_env({}) == DistributedConfig()


@hypothesis.given(st.integers(1, 64), st.integers(1, 8), st.data())
def test_every_place_survives_the_environment(nodes: int, devices: int, data: st.DataObject) -> None:
    rank = data.draw(st.integers(0, nodes * devices - 1))
    place = DistributedConfig(
        nodes * devices, rank, rank % devices, nodes, rank // devices, devices, master_port=1, backend="gloo"
    )
    assert DistributedConfig.from_env(place.validate().to_env()) == place


def test_started_by_hand_each_process_says_which_it_is() -> None:
    shared = DistributedConfig(2, devices_per_node=2, launch_method="env", job="j").to_env()
    place = DistributedConfig.from_env({**shared, "RANK": "1", "LOCAL_RANK": "1"})
    assert (place.rank, place.local_rank, place.is_launched) == (1, 1, True)
    with pytest.raises(ConfigError, match="RANK is ''"):
        DistributedConfig.from_env({ENV_DISTRIBUTED: shared[ENV_DISTRIBUTED]})


@pytest.mark.parametrize(
    ("changes", "values"),
    [
        ({"world_size": 9, "launch_method": "srun"}, ("world_size is 9", "num_nodes is 2 and devices_per_node 4")),
        ({"world_size": 4}, ("world_size is 4", "num_nodes is 2 and devices_per_node 4")),
        ({"rank": 8}, ("rank is 8", "world_size is 8")),
        ({"local_rank": 4}, ("local_rank is 4", "devices_per_node is 4")),
        ({"node_rank": 2}, ("node_rank is 2", "num_nodes is 2")),
        ({"nic": "eth0; rm -rf /"}, ("nic is",)),
        ({"master_port": 0}, ("master_port is 0", "2 nodes")),
        ({"master_port": 70_000}, ("master_port",)),
        ({"backend": "mpi"}, ("backend is 'mpi'",)),
        ({"launch_method": "ssh"}, ("launch_method",)),
        ({"timeout_s": 0.0}, ("timeout_s",)),
        ({"world_size": True}, ("world_size",)),
    ],
)
def test_contradictions_are_named_with_both_values(changes: dict[str, Any], values: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        FULL.replace(**changes).validate()
    assert all(value in caught.value.cause for value in values), caught.value.cause


@pytest.mark.parametrize("method", ["torchrun", "spawn"])
def test_machines_may_have_unequal_numbers_of_processes(method: str) -> None:
    assert FULL.replace(world_size=6, launch_method=method).validate().world_size == 6


@pytest.mark.parametrize("text", ["{", '{"world_size": 2}', '{"unknown": 1}', "[]", '{"rank": -1}'])
def test_an_environment_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        DistributedConfig.from_env({ENV_DISTRIBUTED: text})


def test_a_runs_settings_decide_what_ddp_is_made_with() -> None:
    config = RunConfig(find_unused_parameters=True, gradient_as_bucket_view=False, collective_timeout_s=9.0)
    made = DistributedConfig().with_settings(config)
    assert made.timeout_s == 9.0
    assert made.ddp_arguments == {
        "find_unused_parameters": True,
        "broadcast_buffers": True,
        "gradient_as_bucket_view": False,
    }


@pytest.mark.parametrize("suffix", [".toml", ".yaml", ".json"])
def test_a_whole_value_is_read_back(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"two{suffix}"
    path.write_text(TWO.replace(timeout_s=60.0, broadcast_buffers=False).to_text(suffix), encoding="utf-8")
    flags = flags_of(path, None)
    assert flags["world_size"] == "2" and flags["collective_timeout_s"] == 60.0 and flags["broadcast_buffers"] is False


def said(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "some.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_only_what_stands_in_it_counts(tmp_path: Path) -> None:
    assert flags_of(said(tmp_path, "timeout_s = 9.0"), None) == {"collective_timeout_s": 9.0}


def test_several_nodes(tmp_path: Path) -> None:
    text = (
        "world_size = 4\nnum_nodes = 2\ndevices_per_node = 2\nmaster_addr = 'node1'\nmaster_port = 29400\nnic = 'ib0'"
    )
    path = said(tmp_path, text)
    flags = flags_of(path, None)
    assert flags == {"nodes": "2", "nic": "ib0", "rdzv_endpoint": "node1:29400"}
    assert laid_under(flags, {"nic": "eth0"}, path)["nic"] == "eth0", "another machine calls it otherwise"


def test_contradictions_are_refused_with_both_values(tmp_path: Path) -> None:
    path = said(tmp_path, "world_size = 2\ndevices_per_node = 2\ntimeout_s = 60.0")
    with pytest.raises(UsageError, match=r"--world-size is 3, but .*some.toml says 2"):
        laid_under(flags_of(path, None), {"world_size": "3"}, path)
    assert laid_under(flags_of(path, None), {"world_size": "2", "collective_timeout_s": "60"}, path) == {}
    three = DistributedConfig(3, devices_per_node=3, launch_method="torchrun")
    with pytest.raises(UsageError, match=r"says world_size = 2, but torchrun says 3"):
        flags_of(path, three)
    with pytest.raises(UsageError, match="launch_method = srun, but no launcher has started"):
        flags_of(said(tmp_path, "launch_method = 'srun'"), None)
    with pytest.raises(ConfigError):
        flags_of(said(tmp_path, "world_size = 2"), None)
