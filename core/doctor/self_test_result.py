"""Results of a self-test from what its processes printed and how they ended. Pure.

A process that was killed, crashed, cancelled or too slow has said what it began: that part failed, the parts before it
stand, and those after it were not tried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.doctor.finding import SELF_TESTS, Finding, Topic
from core.machine.devices.device import Device
from core.machine.devices.names import device_label

CHECK: Final = "Close other programs and run the self-tests again; if it happens again, report it with diagnostics."


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process of a test ended.

    Attributes:
        lines: The JSON objects that it printed.
        outcome: "exited normally", "killed …", "was cancelled", "did not finish within 60 s".
        last_line: The last line of its output.
        cancelled: The person ended it.
        broke: It ended by itself, and not well.
    """

    lines: Sequence[Mapping[str, Any]]
    outcome: str
    last_line: str = ""
    cancelled: bool = False
    broke: bool = False

    def part(self, name: str) -> Mapping[str, Any] | None:
        """How a part ended; None if it never did."""
        return next((line for line in self.lines if line.get("part") == name), None)

    @property
    def unfinished(self) -> str:
        """The part that began and has no end; empty where there is none."""
        done = {line.get("part") for line in self.lines}
        return next((str(line["begins"]) for line in self.lines if "begins" in line and line["begins"] not in done), "")

    @property
    def failed(self) -> str:
        """The cause of the first part that failed; empty where none did."""
        return next((str(line.get("cause")) for line in self.lines if line.get("ok") is False), "")

    def why_none(self) -> str:
        """Why a part has no result."""
        if self.cancelled:
            return "the self-test was cancelled"
        during = f" while it did {_PARTS.get(self.unfinished, self.unfinished)}" if self.unfinished else ""
        says = "" if not self.last_line or self.last_line.startswith("{") else f": {self.last_line}"
        return f"the process {self.outcome}{during}{says}"


_PARTS: Final = {
    "import": "the import of PyTorch",
    "kernel": "its first kernel",
    "fp32": "a matmul in fp32",
    "bf16": "a matmul in bf16",
    "fp16": "a matmul in fp16",
    "join": "connect to the other one",
    "sum": "sums with the other one",
}


def compute_topic(device: Device) -> Topic:
    """What the first line of a device's test is about."""
    name = f"Kernel and matmul on {device_label(device)}"
    return Topic(f"compute_{device.uuid}", name, SELF_TESTS, "What each training step is made of.")


def compute_findings(device: Device, ended: Ended) -> list[Finding]:
    """Findings of a device's test: kernel and matmul in one line, bf16 and fp16 in one each."""
    where = device_label(device)
    found = [_compute_finding(compute_topic(device), device, ended)]
    for name in ("bf16", "fp16"):
        half = Topic(
            f"{name}_{device.uuid}",
            f"{name} on {where}",
            SELF_TESTS,
            f"Precision {name} needs it; half precision saves memory, and on GPUs time.",
        )
        part = ended.part(name)
        if part is None:
            found.append(_broken(half, ended) if _broke_in(ended, name) else half.not_tried(_not_reached(ended)))
        elif part["ok"]:
            found.append(half.ok(_speed(part)))
        else:
            found.append(half.warn(str(part["cause"]), "Choose fp32, or the other half precision, as precision."))
    return found


def _compute_finding(topic: Topic, device: Device, ended: Ended) -> Finding:
    kernel, fp32 = ended.part("kernel"), ended.part("fp32")
    if kernel is not None and kernel["ok"] and fp32 is not None and fp32["ok"]:
        return topic.ok(_speed(fp32))
    if ended.cancelled:
        return topic.not_tried(ended.why_none())
    if not ended.failed:
        return _broken(topic, ended)
    if device.kind == "cuda":
        step = "Install PyTorch's CUDA build for this card and driver, update the driver, or train on other devices."
        return topic.fail(ended.failed, step, "install_cuda")
    return topic.fail(ended.failed, "Install PyTorch again, or use another Python environment.")


def link_finding(topic: Topic, ended: Sequence[Ended], *, instead: str, needed: bool) -> Finding:
    """The finding of two ranks that exchanged tensors.

    Args:
        topic: The link.
        ended: How each rank ended.
        instead: What to do where it does not work.
        needed: Nothing takes its place by itself: its failure is one, not a degradation.
    """
    sums = [rank.part("sum") for rank in ended]
    if all(part is not None and part["ok"] for part in sums) and sums[0] is not None:
        beside = f" (gloo: {sums[0]['gloo_mb_per_s']:,.0f} MB/s)" if "gloo_mb_per_s" in sums[0] else ""
        return topic.ok(f"{sums[0]['mb_per_s']:,.0f} MB/s between two processes{beside}")
    # A rank whose partner died says only that its connection was closed.
    worst = next((rank for rank in ended if rank.broke), None)
    worst = worst or next((rank for rank in ended if rank.failed), None)
    worst = worst or next((rank for rank in ended if rank.unfinished), ended[0])
    if worst.cancelled:
        return topic.not_tried(worst.why_none())
    text = worst.failed or worst.why_none()
    return topic.fail(text, instead) if needed else topic.warn(text, instead)


def _broke_in(ended: Ended, name: str) -> bool:
    return not ended.cancelled and ended.unfinished == name


def _broken(topic: Topic, ended: Ended) -> Finding:
    return topic.fail(ended.why_none(), CHECK)


def _not_reached(ended: Ended) -> str:
    if ended.cancelled:
        return ended.why_none()
    broken = next((str(line.get("part")) for line in ended.lines if line.get("ok") is False), "")
    name = ended.unfinished or broken
    return f"not reached: {_PARTS[name]} failed" if name in _PARTS else f"not reached: {ended.why_none()}"


def _speed(part: Mapping[str, Any]) -> str:
    gflops = float(part["gflops"])
    rate = f"{gflops / 1000:,.1f} TFLOP/s" if gflops >= 1000 else f"{gflops:,.0f} GFLOP/s"
    return f"works, {rate}"
