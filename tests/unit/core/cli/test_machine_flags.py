"""The flags of other machines."""

from __future__ import annotations

import pytest

from core.cli.parser import parse
from core.errors import UsageError


def test_machines_lists_unless_something_else_is_asked_for() -> None:
    assert parse(["machines"]).action == "list"
    added = parse(["machines", "add", "gpubox", "me@gpubox.lan", "--port", "2222", "--json"])
    assert (added.action, added.name, added.address, added.port, added.json) == (
        "add", "gpubox", "me@gpubox.lan", "2222", True,
    )  # fmt: skip
    with pytest.raises(UsageError, match="no action 'ad'"):
        parse(["machines", "ad"])


@pytest.mark.parametrize("command", [["train", "--dataset-file", "x"], ["resume", "run"]])
def test_what_trains_can_do_so_elsewhere(command: list[str]) -> None:
    assert parse(command).machine is None
    assert parse([*command, "--machine", "gpubox"]).machine == "gpubox"
