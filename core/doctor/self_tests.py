"""Self-tests: each computes on a device, exchanges tensors, or measures a model, in processes of its own.

A process that crashes, hangs or is cancelled is a result with its reason: it takes nothing else with it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from core.doctor.finding import SELF_TESTS, Finding, Topic
from core.doctor.fit import FIT, check_fit
from core.doctor.modes import check_modes
from core.doctor.self_test_result import Ended, compute_findings, compute_topic, link_finding
from core.errors import RankdeckError
from core.held_files import read_utf8
from core.launch.mode import why_no_cuda, why_no_nccl
from core.launch.plan import plan_bare_ranks
from core.launch.resolved import ResolvedRun
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
# For the processes' output and the file by which they find each other.
LEAST_BYTES: Final = 1 << 20
_PROGRAM: Final = ("-m", "workers.programs.self_test_main")
GLOO: Final = Topic(
    "link_gloo",
    "gloo between two processes",
    SELF_TESTS,
    "DDP, ZeRO and FSDP exchange tensors over it.",
)
SHARED: Final = Topic(
    "link_shared",
    "Shared memory between two processes",
    SELF_TESTS,
    "DDP sums gradients through it where that is faster than gloo.",
)
NCCL: Final = Topic("link_nccl", "NCCL between two GPUs", SELF_TESTS, "GPUs exchange tensors directly, under Linux.")
_INSTEAD: Final = {
    "gloo": "Allow Python to connect to 127.0.0.1 in your firewall, or choose parallel-independent.",
    "shared": "Gradients go over gloo instead, which is slower; nothing has to be done.",
    "nccl": "Choose gloo as backend, which is slower, or parallel-independent.",
}
_LINKS: Final = {"gloo": GLOO, "shared": SHARED, "nccl": NCCL}

_NEVER_BEGUN: Final = Ended((), "was cancelled", cancelled=True)


class CancelledTestError(RankdeckError):
    """The person has ended the self-tests."""

    def __init__(self) -> None:
        super().__init__("The self-test was cancelled.", "You can run the self-tests again at any time.")


@dataclass(frozen=True, slots=True)
class SelfTest:
    """One self-test.

    Attributes:
        name: For the progress line.
        way: ``compute``, ``gloo``, ``shared``, ``nccl`` or ``fit``.
        devices: What it runs on, a process each.
        why_not: Why it cannot be tried; empty where it can.
        run: For ``fit``: what would be trained.
    """

    name: str
    way: str
    devices: tuple[Device, ...] = ()
    why_not: str = ""
    run: ResolvedRun | None = None


def list_self_tests(
    available: Sequence[Device], cpus: Sequence[Device], platform: Platform, run: ResolvedRun | None
) -> tuple[SelfTest, ...]:
    """The self-tests of this machine.

    Args:
        available: Its devices.
        cpus: Its CPU devices.
        platform: This machine.
        run: What would be trained: whether it fits is a test too. None: nothing is chosen.
    """
    gpus = tuple(device for device in available if device.kind == "cuda" and not device.hidden_by)
    usable = () if why_no_cuda(gpus, platform) else gpus
    pair = usable[:2] if len(usable) > 1 else tuple(cpus[:2])
    no_nccl = why_no_nccl(usable[:2], platform) if len(usable) > 1 else "it needs two GPUs that PyTorch can use"
    tests = [SelfTest(f"Computing on {device_label(device)}", "compute", (device,)) for device in usable or cpus[:1]]
    tests.append(SelfTest(GLOO.name, "gloo", pair))
    tests.append(SelfTest(SHARED.name, "shared", pair))
    tests.append(SelfTest(NCCL.name, "nccl", usable[:2], why_not=no_nccl))
    if run is not None:
        tests.append(SelfTest(FIT.name, "fit", run=run))
    return tuple(tests)


def run_self_test(
    test: SelfTest,
    platform: Platform,
    runs_dir: Path,
    *,
    limit_s: float = LIMIT_S,
    cancelled: Callable[[], bool] = lambda: False,
) -> list[Finding]:
    """Runs one test. Blocks; may be called from any thread; never raises for what the machine does.

    Args:
        test: One of `list_self_tests`.
        platform: This machine.
        runs_dir: Where runs are kept.
        limit_s: After that its processes are ended.
        cancelled: Asked now and then; True ends it.
    """
    topic = _LINKS.get(test.way, FIT)
    if platform.torch_version is None:
        test_topic = topic if test.way != "compute" else Topic("compute", test.name, SELF_TESTS, "PyTorch computes.")
        return [test_topic.not_tried("PyTorch is not installed", "Set it up: rankdeck environment make")]
    if test.why_not:
        return [topic.not_tried(f"not tried: {test.why_not}")]
    if test.way == "fit" and test.run is not None:
        return [check_fit(test.run, runs_dir, cancelled)]
    if full := _full_folder():
        text = f"the disk of the temporary folder is full ({full})"
        topic = compute_topic(test.devices[0]) if test.way == "compute" else topic
        return [topic.fail(text, "Free some space on it, or set the variable TEMP (TMPDIR on Linux) to a folder.")]
    try:
        ended = [_NEVER_BEGUN] if cancelled() else _run_ranks(test, platform, limit_s, cancelled)
    except (RankdeckError, OSError) as error:  # no temporary folder, no process
        cause = error.cause if isinstance(error, RankdeckError) else str(error)
        ended = [Ended((), f"could not be started ({cause.rstrip('.')})")] * max(1, len(test.devices))
    if test.way == "compute":
        return compute_findings(test.devices[0], ended[0])
    return [link_finding(topic, ended, instead=_INSTEAD[test.way], needed=test.way != "shared")]


def _full_folder() -> str:
    """The temporary folder if its disk has no room for a test; empty where it has, or does not say."""
    try:
        folder = tempfile.gettempdir()
        return folder if shutil.disk_usage(folder).free < LEAST_BYTES else ""
    except OSError:
        return ""


def _run_ranks(test: SelfTest, platform: Platform, limit_s: float, cancelled: Callable[[], bool]) -> list[Ended]:
    backend = "" if test.way == "compute" else "nccl" if test.way == "nccl" else "gloo"
    arguments = ("compute",) if test.way == "compute" else ("link", test.way)
    was_cancelled = False

    def waiting() -> None:
        if cancelled():
            raise CancelledTestError

    with tempfile.TemporaryDirectory(prefix="rankdeck-test-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        rendezvous = rendezvous_folder(folder) / f".rendezvous-{secrets.token_hex(4)}"
        commands = plan_bare_ranks(
            test.devices,
            platform,
            folder,
            rendezvous,
            (str(training_python().executable), *_PROGRAM, *arguments),
            backend,
        )
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
        with contextlib.suppress(OSError):  # a scanner holds it, and nothing reads it any more
            rendezvous.unlink(missing_ok=True)
    return ended


def _ended(child: Child, limit_s: float, cancelled: bool) -> Ended:
    answer = read_answer(child)
    outcome = answer.outcome
    if not answer.in_time:
        outcome = "was cancelled" if cancelled else f"was ended: it took longer than {limit_s:g} s"
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


def list_here(run: ResolvedRun | None, platform: Platform) -> tuple[SelfTest, ...]:
    """`list_self_tests` of the machine as it is now. Blocks for as long as its driver takes to answer."""
    with DeviceMonitor() as monitor:
        return list_self_tests(monitor.devices(), monitor.cpu_slots(), platform, run)


def judge_modes(tested: Sequence[Finding], platform: Platform) -> list[Finding]:
    """The modes' verdicts after the self-tests: a mode whose link failed does not work. Blocks as `list_here`."""
    by_id = {finding.topic.id: finding for finding in tested}
    links = {way: by_id[topic.id] for way, topic in _LINKS.items() if topic.id in by_id}
    with DeviceMonitor() as monitor:
        return check_modes(monitor.devices(), monitor.cpu_slots(), platform, links)
