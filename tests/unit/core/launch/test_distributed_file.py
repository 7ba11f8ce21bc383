"""`--distributed FILE`: what it adds to flags, and what contradicts it."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.config.distributed import DistributedConfig
from core.errors import ConfigError, UsageError
from core.launch.distributed_file import flags_of, laid_under

pytestmark = pytest.mark.windows
TWO = DistributedConfig(2, devices_per_node=2)


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
