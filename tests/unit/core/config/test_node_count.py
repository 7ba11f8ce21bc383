"""The number of machines of a run, as a setting."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.config.config_file import read_config, to_toml
from core.config.layers import config_from_mapping, load_config
from core.config.node_count import NodeCount
from core.config.run_config import RunConfig
from core.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "count"),
    [("2", (2, 2, 1)), (" 1 : 4 ", (1, 4, 1)), ("2:4", (2, 4, 2)), ("3:3", (3, 3, 3)), ("1", (1, 1, 1))],
)
def test_counts(text: str, count: tuple[int, int, int]) -> None:
    read = NodeCount.read(text)
    assert (read.least, read.most, read.fewest) == count
    assert NodeCount.read(read.text) == read
    assert read.text == text.replace(" ", "")


@pytest.mark.parametrize("text", ["0", "2:1", "-1", "1:2:3", "two", "", "1.5", "99999"])
def test_what_is_no_count_is_refused(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        NodeCount.read(text)
    assert caught.value.field == "nodes" and "--nodes 1:2" in caught.value.next_step


def test_a_run_keeps_how_many_machines_it_trains_on_and_not_where_they_meet(tmp_path: Path) -> None:
    asked = tmp_path / "asked.toml"
    asked.write_text('[nodes]\nnodes = "1:2"\nnic = "eth0"\nrdzv_endpoint = "node1"\n', encoding="utf-8")
    config = config_from_mapping(read_config(asked), asked)
    assert config.nodes == "1:2"
    kept = tmp_path / "run.toml"
    kept.write_text(to_toml(config), encoding="utf-8")
    assert "eth0" not in kept.read_text(encoding="utf-8")
    assert load_config(kept) == config


def test_a_number_will_do_and_one_machine_is_none(tmp_path: Path) -> None:
    assert config_from_mapping({"nodes": 2}).nodes == "2"
    assert RunConfig(nodes="1").nodes is None
    older = tmp_path / "run.toml"
    older.write_text("rankdeck = 1\nsteps = 3\n", encoding="utf-8")
    assert load_config(older).nodes is None, "runs of older versions have no such line"
