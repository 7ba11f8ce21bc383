"""What is said when machines of a run were lost or have joined."""

from __future__ import annotations

import pytest

from core.host.node_changes import LOST, RETURNED, node_changes


def test_a_lost_machine_is_an_alert_with_what_to_do() -> None:
    [(event, alert)] = node_changes(("a", "b", "c"), ("a", "c"))
    assert (event, alert["kind"]) == ("alert", LOST)
    assert alert["title"] == "A machine was lost" and alert["cause"].startswith("b does not answer any more")
    assert "continues on 2 machines (a, c)" in alert["cause"] and "on b again" in alert["next_step"]


def test_machines_that_join_are_told_of() -> None:
    [(event, told)] = node_changes(("a",), ("a", "b", "c"))
    assert event == RETURNED and told["title"] == "2 machines have joined"


def test_machines_of_one_name_are_counted() -> None:
    [(event, _)] = node_changes(("box", "box"), ("box",))
    assert event == "alert"


@pytest.mark.parametrize(("before", "now"), [((), ("a", "b")), (("a", "b"), ()), (("a", "b"), ("b", "a"))])
def test_a_start_a_resume_here_alone_and_no_change_say_nothing(before: tuple[str, ...], now: tuple[str, ...]) -> None:
    assert node_changes(before, now) == ()
