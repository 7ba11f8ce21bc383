"""What a self-test's output comes to, whole or broken off."""

from __future__ import annotations

from typing import Any

import pytest

from core.doctor.finding import Finding
from core.doctor.self_tests import Ended, compute_finding, link_finding
from core.machine.devices import Device

CPU = Device("cpu:0", "cpu", 0, "CPU 0")
GPU = Device("GPU-1", "cuda", 0, "NVIDIA RTX 4090", 24 << 30, (8, 9))
OK: dict[str, Any] = {"ok": True}
EXITED = "exited normally"


def lines(*parts: str, begins: str = "", **wrong: str) -> list[dict[str, Any]]:
    """What a process printed that did these parts; `wrong`: a part and its cause."""
    found = [{"part": part, **OK} for part in ("import", *parts)]
    found += [{"part": part, "ok": False, "cause": cause} for part, cause in wrong.items()]
    return [{"begins": line["part"]} for line in found] + found + ([{"begins": begins}] if begins else [])


def judged(ended: Ended, device: Device = CPU) -> Finding:
    found = compute_finding(device, ended)
    assert found.next_step or found.level in ("ok", "not_tried")
    return found


@pytest.mark.parametrize(
    ("ended", "level", "text"),
    [
        (Ended(lines("fp32", "bf16", "fp16"), EXITED), "ok", "works in fp32, bf16, fp16"),
        (Ended(lines("fp32", "fp16", bf16="RuntimeError: not implemented"), EXITED), "warn", "bf16: RuntimeError: not"),
        (Ended(lines(fp32="no kernel image is available"), EXITED), "fail", "no kernel image"),
        (Ended(lines("fp32", begins="bf16"), "killed", broke=True), "fail", "killed while it did a matmul in bf16"),
        (Ended((), "could not be started (no space)"), "fail", "no space"),
        (Ended((), "ended with exit code 1", "MemoryError", broke=True), "fail", "MemoryError"),
        (Ended([{"begins": "import"}, {"part": "import", "ok": False, "cause": "OSError: DLL"}], "x"), "fail", "DLL"),
        (Ended(lines(begins="fp32"), "was cancelled", cancelled=True), "not_tried", "cancelled"),
    ],
)
def test_a_device_is_judged_by_its_parts(ended: Ended, level: str, text: str) -> None:
    found = judged(ended)
    assert found.level == level and text in found.text, found


def test_a_card_that_the_build_was_not_made_for_is_offered_one() -> None:
    ended = Ended(lines(fp32="RuntimeError: no kernel image is available"), EXITED)
    assert judged(ended, GPU).fix == "install_cuda" and judged(ended).fix == ""


def test_a_link_is_judged_by_the_rank_that_broke() -> None:
    good = Ended([{"part": "join", **OK}, {"part": "sum", **OK}], EXITED)
    found = link_finding("gloo", [good, good])
    assert found.level == "ok" and found.text == "two processes sum tensors"
    torn = Ended([{"part": "join", **OK}, {"part": "sum", "ok": False, "cause": "Connection closed by peer"}], "exited")
    killed = Ended([{"part": "join", **OK}, {"begins": "sum"}], "killed", broke=True)
    found = link_finding("gloo", [torn, killed])
    assert (found.level, found.text) == ("fail", "the process killed while it did sums with the other one")
    hung = Ended([{"begins": "join"}], "was ended: it took longer than 60 s")
    assert "60 s" in link_finding("gloo", [hung, hung]).text
    cancelled = Ended((), "", cancelled=True)
    assert link_finding("nccl", [cancelled, cancelled]).level == "not_tried"
