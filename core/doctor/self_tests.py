"""Self-tests: each computes on a device or exchanges tensors between two, in processes of its own.

A process that crashes, hangs or is cancelled is a result with its reason. It says what it begins and how each part
ended, so the part in which it was killed is known.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.doctor.finding import SELF_TESTS, Finding, Topic
from core.doctor.modes import check_modes
from core.errors import RankdeckError
from core.held_files import read_utf8
from core.launch.mode import why_no_cuda, why_no_nccl
from core.launch.plan import plan_bare_ranks
from core.machine.devices import Device
from core.machine.devices.monitor import DeviceMonitor
from core.machine.devices.names import device_label
from core.machine.platform import Platform, rendezvous_folder
from core.parsing import parse_json
from core.processes import Child, ProcessTree
from core.processes.ask import read_answer, wait_until_ended
from core.training_python import training_python

# For each test; one on an idle machine takes about five seconds, of which the import of PyTorch takes most.
LIMIT_S: Final = 60.0
_PROGRAM: Final = ("-m", "workers.programs.self_test_main")
_PRECISIONS: Final = ("fp32", "bf16", "fp16")
_PARTS: Final = {
    "import": "the import of PyTorch",
    **{name: f"a matmul in {name}" for name in _PRECISIONS},
    "join": "connect to the other one",
    "sum": "sums with the other one",
}
GLOO: Final = Topic(
    "link_gloo", "gloo between two processes", SELF_TESTS, "DDP, ZeRO and FSDP exchange tensors over it."
)
NCCL: Final = Topic("link_nccl", "NCCL between two GPUs", SELF_TESTS, "GPUs exchange tensors directly, under Linux.")
_LINKS: Final = {"gloo": GLOO, "nccl": NCCL}
_INSTEAD: Final = {
    "gloo": "Allow Python to connect to 127.0.0.1 in your firewall, or choose parallel-independent.",
    "nccl": "Choose gloo as backend, which is slower, or parallel-independent.",
}


class CancelledTestError(RankdeckError):
    """The person has ended the self-tests."""

    def __init__(self) -> None:
        super().__init__("The self-test was cancelled.", "You can run the self-tests again at any time.")


@dataclass(frozen=True, slots=True)
class SelfTest:
    """One self-test.

    Attributes:
        way: ``compute``, ``gloo`` or ``nccl``.
        devices: The devices to test, a process each.
        why_not: The reason that it cannot be tried; empty where it can.
    """

    topic: Topic
    way: str
    devices: tuple[Device, ...]
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a test's process.

    Attributes:
        lines: The JSON objects that it printed.
        outcome: "exited normally", "killed …", "did not finish within 60 s".
        last_line: The last line of its output.
        broke: It ended by itself, and not well.
    """

    lines: Sequence[Mapping[str, Any]]
    outcome: str
    last_line: str = ""
    cancelled: bool = False
    broke: bool = False

    def part(self, name: str) -> Mapping[str, Any]:
        """Return a part's result; empty if it never ended."""
        return next((line for line in self.lines if line.get("part") == name), {})

    @property
    def unfinished(self) -> str:
        done = {line.get("part") for line in self.lines}
        return next((str(line["begins"]) for line in self.lines if "begins" in line and line["begins"] not in done), "")

    @property
    def failed(self) -> str:
        """The cause of the first part that failed."""
        return next((str(line.get("cause")) for line in self.lines if line.get("ok") is False), "")

    @property
    def problem(self) -> str:
        if self.cancelled:
            return "the self-test was cancelled"
        if self.failed:
            return self.failed
        during = f" while it did {_PARTS.get(self.unfinished, self.unfinished)}" if self.unfinished else ""
        says = "" if not self.last_line or self.last_line.startswith("{") else f": {self.last_line}"
        return f"the process {self.outcome}{during}{says}"


def list_self_tests(available: Sequence[Device], cpus: Sequence[Device], platform: Platform) -> tuple[SelfTest, ...]:
    gpus = tuple(device for device in available if device.kind == "cuda" and not device.hidden_by)
    usable = () if why_no_cuda(gpus, platform) else gpus
    pair = usable[:2] if len(usable) > 1 else tuple(cpus[:2])
    no_nccl = why_no_nccl(usable[:2], platform) if len(usable) > 1 else "it needs two GPUs that PyTorch can use"
    return (
        *(SelfTest(_compute_topic(device), "compute", (device,)) for device in usable or cpus[:1]),
        SelfTest(GLOO, "gloo", pair),
        SelfTest(NCCL, "nccl", usable[:2], no_nccl),
    )


def run_self_test(
    test: SelfTest,
    platform: Platform,
    *,
    limit_s: float = LIMIT_S,
    cancelled: Callable[[], bool] = lambda: False,
) -> Finding:
    """Run one test. Blocks; never raises for what the machine does.

    Args:
        limit_s: The time after which its processes are ended.
        cancelled: Asked now and then; True ends the test.
    """
    topic = test.topic
    if platform.torch_version is None:
        return topic.not_tried("PyTorch is not installed", "Set it up: rankdeck environment make")
    if test.why_not:
        return topic.not_tried(f"not tried: {test.why_not}")
    try:
        ended = [Ended((), "", cancelled=True)] if cancelled() else _run_ranks(test, platform, limit_s, cancelled)
    except (RankdeckError, OSError) as error:  # no temporary folder, no process
        cause = error.cause if isinstance(error, RankdeckError) else str(error)
        ended = [Ended((), f"could not be started ({cause.rstrip('.')})")]
    return compute_finding(test.devices[0], ended[0]) if test.way == "compute" else link_finding(test.way, ended)


def _compute_topic(device: Device) -> Topic:
    return Topic(
        f"compute_{device.uuid}",
        f"Computing on {device_label(device)}",
        SELF_TESTS,
        "Each training step is made of matmuls; half precision saves memory, and on GPUs time.",
    )


def compute_finding(device: Device, ended: Ended) -> Finding:
    """Judge a device: a precision that it lacks is a degradation, anything else a failure."""
    topic = _compute_topic(device)
    parts = {name: ended.part(name) for name in _PRECISIONS}
    works = f"works in {', '.join(name for name, part in parts.items() if part.get('ok'))}"
    lacking = {name: str(part.get("cause")) for name, part in parts.items() if part and not part["ok"]}
    if ended.cancelled:
        return topic.not_tried(ended.problem)
    if all(parts.values()) and not lacking:
        return topic.ok(works)
    if all(parts.values()) and "fp32" not in lacking:
        text = "; ".join(f"{name}: {cause}" for name, cause in lacking.items())
        return topic.warn(f"{works}. {text}", f"Choose another precision than {' and '.join(lacking)}.")
    if not ended.failed:
        step = "Close other programs and run the self-tests again; if it happens again, report it with diagnostics."
        return topic.fail(ended.problem, step)
    if device.kind == "cuda":
        step = "Install PyTorch's CUDA build for this card and driver, update the driver, or train on other devices."
        return topic.fail(ended.failed, step, "install_cuda")
    return topic.fail(ended.failed, "Install PyTorch again, or use another Python environment.")


def link_finding(way: str, ended: Sequence[Ended]) -> Finding:
    """Judge a link by how each of its ranks ended."""
    topic, sums = _LINKS[way], [rank.part("sum") for rank in ended]
    if all(part.get("ok") for part in sums):
        return topic.ok("two processes sum tensors")
    # A rank whose partner died says only that its connection was closed.
    worst = next((rank for rank in ended if rank.broke), None)
    worst = worst or next((rank for rank in ended if rank.failed), None)
    worst = worst or next((rank for rank in ended if rank.unfinished), ended[0])
    return topic.not_tried(worst.problem) if worst.cancelled else topic.fail(worst.problem, _INSTEAD[way])


def _run_ranks(test: SelfTest, platform: Platform, limit_s: float, cancelled: Callable[[], bool]) -> list[Ended]:
    backend, what = ("", "compute") if test.way == "compute" else (test.way, "link")
    was_cancelled = False

    def waiting() -> None:
        if cancelled():
            raise CancelledTestError

    with tempfile.TemporaryDirectory(prefix="rankdeck-test-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        rendezvous = rendezvous_folder(folder) / f".rendezvous-{secrets.token_hex(4)}"
        program = (str(training_python().executable), *_PROGRAM, what)
        commands = plan_bare_ranks(test.devices, platform, folder, rendezvous, program, backend)
        with ProcessTree() as tree:
            children = [
                tree.spawn(command.argv, command.environment(os.environ), command.cwd, command.log)
                for command in commands
            ]
            try:
                wait_until_ended(children, limit_s, waiting)
            except CancelledTestError:
                was_cancelled = True
            ended = [_ended(child, limit_s, was_cancelled) for child in children]
        # A scanner holds it, and nothing reads it any more.
        with contextlib.suppress(OSError):
            rendezvous.unlink(missing_ok=True)
    return ended


def _ended(child: Child, limit_s: float, cancelled: bool) -> Ended:
    answer = read_answer(child)
    outcome = answer.outcome if answer.in_time else f"was ended: it took longer than {limit_s:g} s"
    broke = child.poll() not in (None, 0)
    return Ended(tuple(_lines(child.log)), outcome, answer.last_line, cancelled and not answer.in_time, broke)


def _lines(log: Path) -> list[dict[str, Any]]:
    found = []
    for line in read_utf8(log, errors="replace").splitlines():
        try:
            values = parse_json(line)
        except ValueError:
            continue
        if isinstance(values, dict):
            found.append(values)
    return found


def list_here(platform: Platform) -> tuple[SelfTest, ...]:
    """List the self-tests of this machine. Blocks for as long as its driver takes to answer."""
    with DeviceMonitor() as monitor:
        return list_self_tests(monitor.devices(), monitor.cpu_slots(), platform)


def judge_modes(tested: Sequence[Finding], platform: Platform) -> list[Finding]:
    """Judge the modes after the self-tests: a mode whose link failed does not work. Blocks as `list_here`."""
    by_id = {finding.topic.id: finding for finding in tested}
    links = {way: by_id[topic.id] for way, topic in _LINKS.items() if topic.id in by_id}
    with DeviceMonitor() as monitor:
        return check_modes(monitor.devices(), monitor.cpu_slots(), platform, links)
