"""Real runs with a device that the others wait for: it is named, with the reason that was made."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.client import stop_run
from core.host.watches import straggler
from core.run_folder.store import RunStore
from tests.helpers.hosted_run import HOST_S, host, lines, make_run, write_text

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

RECIPE = str(Path(__file__).parents[2] / "helpers" / "recipes" / "unequal")
LIMIT_S = 120.0


def make_unequal(folder: Path, mode: str, options: dict[str, Any], **settings: Any) -> RunStore:
    """A run that trains until it is stopped; rank 1 is the slow one."""
    text = write_text(folder.parent / "text.txt", 100_000)
    values: dict[str, Any] = {
        "steps": 1_000_000,
        "epochs": 1_000_000,
        "eval_every": None,
        "zero_stage": 2,
        "zero_engine": "torch",
        **settings,
    }
    options = {"slow_rank": 1, "times": 1, **options}
    return make_run(folder, text, mode, 2, recipe=RECIPE, options=options, **values)


def stopped_after(store: RunStore, reached: Callable[[], bool]) -> list[dict[str, Any]]:
    """Runs it until that is reached, or a time limit in training; what was said of stragglers."""

    def stop() -> None:
        first = time.monotonic() + HOST_S
        while time.monotonic() < first and not lines(store, "step"):
            time.sleep(0.1)
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline and not reached():
            time.sleep(0.1)
        stop_run(store)

    stopping = threading.Thread(target=stop, daemon=True)
    stopping.start()
    assert host(store, timeout_s=HOST_S + LIMIT_S + 30) == 0
    stopping.join()
    return lines(store, "straggler")


@pytest.mark.parametrize(
    ("mode", "settings"),
    [("ddp", {}), ("ddp", {"gradient_exchange": "plain"})],
    ids=["ddp-shared", "ddp-gloo"],
)
def test_a_device_that_loads_slowly_is_named(mode: str, settings: dict[str, Any], tmp_path: Path) -> None:
    store = make_unequal(tmp_path / "run", mode, {"load_ms": 60}, **settings)
    (found,) = stopped_after(store, lambda: bool(lines(store, "alert")))
    (alert,) = lines(store, "alert")
    assert (found["ranks"], found["reason"]) == ([1], "data")
    # the share of a wait of 60 ms falls as a busy machine's steps grow longer
    assert found["lost"] == found["waits"]["0"] > straggler.BEGINS and found["waits"]["1"] == 0
    assert (alert["kind"], alert["ranks"]) == ("straggler", [1])
    assert alert["title"] == "CPU 1 slows down the other devices"
    assert "CPU 0 waits" in alert["cause"] and "on loading data" in alert["cause"]


def test_a_slower_device_is_named_with_what_load_balancing_would_bring(tmp_path: Path) -> None:
    store = make_unequal(tmp_path / "run", "ddp", {"times": 4, "n_embd": 96}, batch_size=16)
    stopped_after(store, lambda: bool(lines(store, "alert")))
    (alert,) = lines(store, "alert")
    assert (alert["kind"], alert["ranks"]) == ("straggler", [1])
    assert alert["gain"] > 0.1 and "--balance measured" in alert["next_step"]
    assert alert["reason"] == "slower" and "more than the others" in alert["cause"]
    assert "load balancing" in alert["window_step"] and "--" not in alert["window_step"]


@pytest.mark.parametrize(("mode", "stage"), [("fsdp", 1), ("zero", 3)])
def test_a_slower_device_is_waited_for_where_weights_are_sharded(mode: str, stage: int, tmp_path: Path) -> None:
    store = make_unequal(tmp_path / "run", mode, {"times": 3}, steps=12, epochs=1, zero_stage=stage)
    assert host(store) == 0
    assert max(line["step"] for line in lines(store, "step")) == 12


def test_nothing_is_said_of_devices_that_do_not_wait(tmp_path: Path) -> None:
    apart = make_unequal(tmp_path / "apart", "independent", {"load_ms": 60}, max_hours=20 / 3600)
    assert host(apart) == 0
    assert len(lines(apart, "step")) > 200
    assert lines(apart, "straggler") == [] and {line["kind"] for line in lines(apart, "alert")} == {"early_stop"}
