"""`DistributedConfig`: the same value in the environment, and contradictions refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.config.distributed import ENV_DISTRIBUTED, DistributedConfig
from core.errors import ConfigError

hypothesis = pytest.importorskip("hypothesis", reason="property tests need hypothesis")
st = pytest.importorskip("hypothesis.strategies", reason="property tests need hypothesis")
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
    launch_method="torchrun",
    job="a-job",
    restart_count=1,
    max_restarts=3,
)


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


@pytest.mark.parametrize(
    ("changes", "values"),
    [
        (
            {"world_size": 9, "num_nodes": 1, "node_rank": 0},
            ("world_size is 9", "num_nodes is 1 and devices_per_node 4"),
        ),
        ({"world_size": 4}, ("world_size is 4", "num_nodes is 2 and devices_per_node 4")),
        ({"rank": 8}, ("rank is 8", "world_size is 8")),
        ({"local_rank": 4}, ("local_rank is 4", "devices_per_node is 4")),
        ({"node_rank": 2}, ("node_rank is 2", "num_nodes is 2")),
        ({"master_port": 70_000}, ("master_port",)),
        ({"launch_method": "ssh"}, ("launch_method",)),
        ({"timeout_s": 0.0}, ("timeout_s",)),
        ({"world_size": True}, ("world_size",)),
    ],
)
def test_contradictions_are_named_with_both_values(changes: dict[str, Any], values: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        DistributedConfig.from_env({ENV_DISTRIBUTED: json.dumps({**FULL.to_dict(), **changes})})
    assert all(value in caught.value.cause for value in values), caught.value.cause


@pytest.mark.parametrize("method", ["torchrun", "spawn", "srun"])
def test_machines_may_have_unequal_numbers_of_processes(method: str) -> None:
    assert FULL.replace(world_size=6, launch_method=method).validate().world_size == 6


@pytest.mark.parametrize("text", ["{", '{"world_size": 2}', '{"unknown": 1}', "[]", '{"rank": -1}'])
def test_an_environment_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        DistributedConfig.from_env({ENV_DISTRIBUTED: text})
