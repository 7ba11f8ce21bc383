"""The network interface that a run of several machines uses."""

from __future__ import annotations

import pytest

from core.errors import PreflightError, UsageError
from core.launch.nodes.nic import address_of, addresses, resolve_host

FOUND = {"eth0": "10.0.0.1", "lo": "127.0.0.1"}


def test_it_must_be_named_and_be_there() -> None:
    assert address_of("eth0", FOUND, "10.0.0.9") == ("eth0", "10.0.0.1")
    for asked in ("", "eth1"):
        with pytest.raises(UsageError) as raised:
            address_of(asked, FOUND, "10.0.0.9")
        assert "eth0 (10.0.0.1), lo (127.0.0.1)" in raised.value.next_step, "it says which there are"


def test_it_can_be_the_one_on_the_way_to_the_host() -> None:
    assert address_of("auto", FOUND, "127.0.0.1") == ("lo", "127.0.0.1")
    with pytest.raises(UsageError, match="'auto'"):
        address_of("auto", {"eth0": "10.0.0.1"}, "127.0.0.1")


def test_loopback_is_among_those_of_this_machine() -> None:
    assert "127.0.0.1" in addresses().values()


def test_a_name_that_is_unknown_is_refused() -> None:
    assert resolve_host("127.0.0.1") == "127.0.0.1"
    with pytest.raises(PreflightError, match=r"no\.such\.machine\.invalid"):
        resolve_host("no.such.machine.invalid")
