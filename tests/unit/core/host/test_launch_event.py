"""What a run says when machines are missing or have come: its batch, and how a machine comes back."""

from __future__ import annotations

import pytest

from core.config import RunConfig
from core.host.launch_event import NODE_LOST, NODE_RETURNED, fewer_devices_alert, node_changes
from tests.helpers.resolved_run import resolved_run


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"global_batch_size": 24}, "is still 24 samples, so a step takes longer"),
        ({}, "is now 8 samples, with the same learning rate"),
        ({}, "its own global batch of 4, as before"),
    ],
)
def test_the_alert_says_what_happens_to_the_batch(settings: dict[str, int], words: str) -> None:
    mode = "independent" if "its own" in words else "ddp"
    run = resolved_run(RunConfig(batch_size=4, **settings), mode, 2)
    alert = fewer_devices_alert(run, 3)
    assert alert is not None and words in alert["cause"]
    assert alert["cause"].startswith("A machine is missing: 2 of 3 devices train.")
    assert ("global batch" in alert["next_step"]) == ("is now" in words)
    assert fewer_devices_alert(run, 2) is None


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("single", "now holds all of it. The global batch is still 24 samples"),
        ("independent", "its own global batch of 24"),
    ],
)
def test_what_one_device_that_is_left_does(mode: str, words: str) -> None:
    alert = fewer_devices_alert(resolved_run(RunConfig(batch_size=4, global_batch_size=24), mode, 1), 2)
    assert alert is not None and words in alert["cause"]


def test_a_lost_machine_is_an_alert_with_what_to_do() -> None:
    [(event, alert)] = node_changes(("a", "b", "c"), ("a", "c"))
    assert (event, alert["kind"]) == ("alert", NODE_LOST)
    assert alert["title"] == "A machine was lost" and alert["cause"].startswith("b does not answer any more")
    assert "continues on 2 machines (a, c)" in alert["cause"] and "on b again" in alert["next_step"]


def test_machines_that_join_are_told_of() -> None:
    [(event, told)] = node_changes(("a",), ("a", "b", "c"))
    assert event == NODE_RETURNED and told["title"] == "2 machines have joined"


def test_machines_of_one_name_are_counted() -> None:
    [(event, _)] = node_changes(("box", "box"), ("box",))
    assert event == "alert"


@pytest.mark.parametrize(("before", "now"), [((), ("a", "b")), (("a", "b"), ()), (("a", "b"), ("b", "a"))])
def test_a_start_a_resume_here_alone_and_no_change_say_nothing(before: tuple[str, ...], now: tuple[str, ...]) -> None:
    assert node_changes(before, now) == ()
