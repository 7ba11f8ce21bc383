"""What cannot be asked for with `--nodes`."""

from __future__ import annotations

import sys

import pytest

from core.cli.node_flags import check_nodes_arguments, check_recipe_on_nodes
from core.cli.parser import parse
from core.errors import PreflightError, UsageError
from core.recipes.catalog import get_recipe


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--nic", "eth0"], "--nic"),
        (["--master-addr", "node1"], "--master-addr"),
        (["--nodes-wait-s", "3"], "--nodes-"),
    ],
)
def test_their_companions_need_it(flags: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check_nodes_arguments(parse(["train", "--dataset-file", "x", *flags]), None)


def test_a_windows_machine_is_refused_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(PreflightError, match="libuv"):
        check_nodes_arguments(parse(["train", "--dataset-file", "x", "--nodes", "2"]), "2")


@pytest.mark.skipif(sys.platform != "linux", reason="refused before on other systems")
def test_it_cannot_be_detached() -> None:
    with pytest.raises(UsageError, match="--detach"):
        check_nodes_arguments(parse(["train", "--dataset-file", "x", "--nodes", "2", "--detach"]), "2")
    with pytest.raises(UsageError, match="--machine"):
        check_nodes_arguments(parse(["train", "--dataset-file", "x", "--nodes", "2", "--machine", "gpubox"]), "2")
    check_nodes_arguments(parse(["train", "--dataset-file", "x", "--nodes", "2"]), "2")


def test_a_users_script_is_refused() -> None:
    with pytest.raises(UsageError, match="cannot train on several"):
        check_recipe_on_nodes(get_recipe("script"))
    check_recipe_on_nodes(get_recipe("minigpt"))


@pytest.mark.skipif(sys.platform != "linux", reason="refused before on other systems")
def test_a_config_file_may_ask_for_them_and_a_flag_for_this_machine_alone() -> None:
    with pytest.raises(UsageError, match="--detach"):
        check_nodes_arguments(parse(["train", "--config", "x.toml", "--detach"]), "2")
    check_nodes_arguments(parse(["train", "--config", "x.toml", "--nodes", "1", "--nic", "eth0"]), None)
