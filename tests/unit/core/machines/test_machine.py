"""Names and addresses of machines, and references to data there."""

from __future__ import annotations

import pytest

from core.config.run_config import RunConfig
from core.errors import ConfigError, UsageError
from core.machines.machine import check_address, check_name, check_not_there
from core.machines.send import check_sendable


@pytest.mark.parametrize("name", ["box", "gpu-2.lan", "A_1", " box "])
def test_a_name(name: str) -> None:
    assert check_name(name) == name.strip()


@pytest.mark.parametrize("name", ["", "here", "HERE", "-x", "a b", "ü", "a/b", "x" * 41])
def test_no_name(name: str) -> None:
    with pytest.raises(UsageError, match="is not a name"):
        check_name(name)


@pytest.mark.parametrize("address", ["me@host", "host", "me@10.0.0.1", "me@fe80::1%eth0", "a.b@host.lan", "alias_1"])
def test_an_address(address: str) -> None:
    assert check_address(address) == address


@pytest.mark.parametrize("address", ["", "-oProxyCommand=x", "me@-x", "a b", "me@host;ls", "me@ho'st", "a@b@c", "me@"])
def test_no_address(address: str) -> None:
    with pytest.raises(UsageError, match="is not an address"):
        check_address(address)


def test_a_path_there_is_for_another_machine_only() -> None:
    config = RunConfig(dataset_file="there:///data/corpus.txt")
    check_sendable(config)
    with pytest.raises(UsageError, match="a path on another machine"):
        check_not_there(config)
    check_not_there(RunConfig())


@pytest.mark.parametrize(
    ("field", "text"), [("dataset_file", "there://"), ("dataset_file", "there://  "), ("log_file", "/tmp/copy.jsonl")]
)
def test_what_cannot_be_sent_is_named(field: str, text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_sendable(RunConfig(**{field: text}))
    assert refused.value.field == field
