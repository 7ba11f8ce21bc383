"""What a self-test's output comes to, whole or broken off."""

from __future__ import annotations

from typing import Any

import pytest

from core.doctor.self_test_result import Ended, compute_findings, link_finding
from core.doctor.self_tests import GLOO, SHARED
from core.machine.devices import Device

CPU = Device("cpu:0", "cpu", 0, "CPU 0")
GPU = Device("GPU-1", "cuda", 0, "NVIDIA RTX 4090", 24 << 30, (8, 9))
OK: dict[str, Any] = {"ok": True}


def lines(*parts: str, begins: str = "", **wrong: str) -> list[dict[str, Any]]:
    """What a process printed that did these parts; `wrong`: a part and its cause."""
    found = [{"part": part, **OK, "gflops": 1500.0} for part in ("import", *parts)]
    found += [{"part": part, "ok": False, "cause": cause} for part, cause in wrong.items()]
    return [{"begins": line["part"]} for line in found] + found + ([{"begins": begins}] if begins else [])


def levels(ended: Ended, device: Device = CPU) -> list[str]:
    """Of kernel and matmul, bf16, fp16."""
    found = compute_findings(device, ended)
    assert all(finding.next_step for finding in found if finding.level in ("warn", "fail"))
    assert len({finding.topic.id for finding in found}) == 3
    return [finding.level for finding in found]


def test_all_is_well() -> None:
    ended = Ended(lines("kernel", "fp32", "bf16", "fp16"), "exited normally")
    assert levels(ended) == ["ok", "ok", "ok"]
    assert "1.5 TFLOP/s" in compute_findings(CPU, ended)[0].text


def test_a_precision_that_the_device_lacks_is_a_degradation() -> None:
    ended = Ended(lines("kernel", "fp32", "fp16", bf16="RuntimeError: not implemented"), "exited normally")
    assert levels(ended) == ["ok", "warn", "ok"]
    assert "not implemented" in compute_findings(CPU, ended)[1].text


def test_a_card_that_the_build_was_not_made_for() -> None:
    ended = Ended(lines(kernel="RuntimeError: no kernel image is available"), "exited normally")
    first, *others = compute_findings(GPU, ended)
    assert (first.level, first.fix) == ("fail", "install_cuda") and "no kernel image" in first.text
    assert [finding.level for finding in others] == ["not_tried", "not_tried"]
    assert all("first kernel" in finding.text for finding in others)
    assert compute_findings(CPU, ended)[0].fix == ""


def test_a_process_that_was_killed_says_in_what() -> None:
    ended = Ended(lines("kernel", "fp32", begins="bf16"), "killed (often by …)", broke=True)
    assert levels(ended) == ["ok", "fail", "not_tried"]
    _, bf16, fp16 = compute_findings(CPU, ended)
    assert "killed" in bf16.text and "bf16" in bf16.text and "bf16" in fp16.text


@pytest.mark.parametrize(
    ("ended", "words"),
    [
        (Ended((), "could not be started (no space)"), "no space"),
        (Ended((), "ended with exit code 1", "MemoryError", broke=True), "MemoryError"),
        (Ended(lines(begins="kernel"), "was ended: it took longer than 60 s"), "60 s while it did its first kernel"),
        (Ended([{"begins": "import"}, {"part": "import", "ok": False, "cause": "OSError: DLL"}], "exited"), "DLL"),
    ],
)
def test_a_process_that_never_computed(ended: Ended, words: str) -> None:
    assert levels(ended) == ["fail", "not_tried", "not_tried"]
    assert words in compute_findings(CPU, ended)[0].text


def test_a_cancelled_test_has_failed_nothing() -> None:
    ended = Ended(lines("kernel", begins="fp32"), "was cancelled", cancelled=True)
    assert levels(ended) == ["not_tried", "not_tried", "not_tried"]
    assert link_finding(GLOO, [ended, ended], instead="x", needed=True).level == "not_tried"


def link(*ended: Ended, needed: bool = True) -> tuple[str, str]:
    """Level and text of a link's finding."""
    found = link_finding(GLOO if needed else SHARED, ended, instead="Do that.", needed=needed)
    return found.level, found.text


def test_links() -> None:
    good = Ended([{"part": "join", **OK}, {"part": "sum", **OK, "mb_per_s": 1234.4}], "exited normally")
    level, text = link(good, good)
    assert level == "ok" and "1,234 MB/s" in text
    torn = Ended([{"part": "join", **OK}, {"part": "sum", "ok": False, "cause": "Connection closed by peer"}], "exited")
    killed = Ended([{"part": "join", **OK}, {"begins": "sum"}], "killed", broke=True)
    assert link(torn, killed) == ("fail", "the process killed while it did sums with the other one")
    assert link(torn, torn, needed=False) == ("warn", "Connection closed by peer")
    hung = Ended([{"begins": "join"}], "was ended: it took longer than 60 s")
    assert "60 s" in link(hung, hung)[1]
