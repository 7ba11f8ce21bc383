"""The reporter: what is said arrives in order, and saying it never waits for anyone."""

from __future__ import annotations

import json
import math
import threading
from typing import Any

import numpy as np
import pytest

from core.protocol.codec import decode
from core.protocol.messages import Bye, Phase, RankFailed
from workers.host_link.reporter import Reporter


class Wire:
    """Collects lines; can be made to refuse or to stall."""

    def __init__(self) -> None:
        self.data = b""
        self.open = threading.Event()
        self.open.set()
        self.error: OSError | None = None

    def send_bytes(self, data: bytes) -> None:
        assert self.open.wait(10)
        if self.error is not None:
            raise self.error
        self.data += data

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.data.splitlines()]


@pytest.fixture
def wire() -> Wire:
    return Wire()


def test_a_step_line_carries_what_the_contract_asks_for(wire: Wire) -> None:
    reporter = Reporter(wire, rank=1, attempt=2)
    reporter.log(7, loss=1.5, lr=1e-3, sync_wait_s=None)
    assert reporter.close()
    (line,) = wire.lines()
    assert line.pop("ts") > 1.6e9
    assert line == {"event": "step", "rank": 1, "attempt": 2, "step": 7, "loss": 1.5, "lr": 1e-3}


def test_nonfinite_values_are_null_and_named(wire: Wire) -> None:
    reporter = Reporter(wire, 0, 1)
    reporter.log(1, loss=math.nan, grad_norm=math.inf, lr=0.1)
    reporter.close()
    (line,) = wire.lines()
    assert (line["loss"], line["grad_norm"], line["lr"]) == (None, None, 0.1)
    assert line["nonfinite"] == ["loss", "grad_norm"]


def test_numbers_in_arrays_are_read_by_the_sender(wire: Wire) -> None:
    class Lazy:
        def item(self) -> float:
            assert threading.current_thread().name == "reporter"
            return 2.5

    reporter = Reporter(wire, 0, 1)
    reporter.log(1, loss=Lazy(), other=np.float32(0.5), nan=np.float64("nan"))
    reporter.close()
    (line,) = wire.lines()
    assert (line["loss"], line["other"], line["nan"], line["nonfinite"]) == (2.5, 0.5, None, ["nan"])


def test_a_number_beyond_64_bits_does_not_end_the_sending(wire: Wire) -> None:
    reporter = Reporter(wire, 0, 1)
    reporter.log(1, flops=1 << 70)
    reporter.log(2, loss=0.5)
    assert reporter.close()
    assert [line.get("flops", line.get("loss")) for line in wire.lines()] == [1 << 70, 0.5]


def test_order_is_kept_between_lines_events_and_messages(wire: Wire) -> None:
    reporter = Reporter(wire, 0, 1)
    for step in range(50):
        reporter.log(step, loss=0.0)
        reporter.event("eval", step=step, val_loss=1.0)
        reporter.send(Phase(str(step)))
    reporter.close(Bye(49))
    seen = [line.get("step", line.get("name")) for line in wire.lines()[:-1]]
    assert seen == [value for step in range(50) for value in (step, step, str(step))]
    assert decode(wire.data.splitlines()[-1]) == Bye(49, 0)


def test_a_slow_host_costs_metrics_which_are_counted_and_nothing_else(wire: Wire) -> None:
    wire.open.clear()
    reporter = Reporter(wire, 0, 1, limit=10)
    for step in range(1_000):
        reporter.log(step, loss=0.0)
    reporter.event("eval", step=1000, val_loss=1.0)
    dropped = reporter.dropped
    assert dropped > 900
    wire.open.set()
    assert reporter.close(Bye(1000))
    lines = wire.lines()
    steps = [line for line in lines if line.get("event") == "step"]
    alerts = [line for line in lines if line.get("event") == "alert"]
    assert len(steps) + dropped == 1_000
    assert [line["event"] for line in lines if line.get("event") == "eval"] == ["eval"]
    assert alerts[-1]["dropped"] == dropped and alerts[-1]["kind"] == "dropped_metrics"
    assert lines[-1] == {"type": "bye", "step": 1000, "dropped": dropped}


def test_a_broken_line_is_noticed_at_the_end_and_never_before(wire: Wire) -> None:
    wire.error = ConnectionResetError("gone")
    reporter = Reporter(wire, 0, 1)
    for step in range(100):
        reporter.log(step, loss=0.0)
    assert not reporter.close(RankFailed("a", "b", "c"))


def test_text_that_is_no_unicode_does_not_break_the_line(wire: Wire) -> None:
    reporter = Reporter(wire, 0, 1)
    reporter.event("sample", step=1, text="tail \ud800 \x00 ü", extra=[1, "a", {"k": math.pi}], flag=True)
    reporter.close()
    (line,) = wire.lines()
    assert line["text"] == "tail ? \x00 ü" and line["extra"] == [1, "a", {"k": math.pi}] and line["flag"] is True
