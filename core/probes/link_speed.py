"""Measures how fast some devices exchange tensors, and keeps what was measured.

Ranks without a run host are started for some seconds (`workers.programs.link_speed_main`); they end when this process
ends, and are ended when they take too long.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import secrets
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from core.errors import RankdeckError
from core.files.atomic import write_atomic
from core.held_files import read_utf8
from core.launch.plan import RankCommand, plan_link_test
from core.machine.devices import Device
from core.machine.platform import Platform, rendezvous_folder
from core.parsing import parse_json
from core.probes.sync_cost import Link
from core.processes import Child, ProcessTree
from core.processes.ask import read_answer, wait_until_ended
from core.recipes.check import error_in
from core.records import RecordError, read_record
from core.training_python import training_python

SECONDS: Final = 3.0
"""Of measuring; with starting Python and importing torch about five in all."""
LIMIT_S: Final = 60.0
_KEPT_FILE: Final = "links.json"
_FORMAT: Final = "rankdeck-links"


class LinkTestError(RankdeckError):
    """The devices could not be measured."""

    title = "The link between the devices could not be measured"


def measure_link(
    devices: Sequence[Device],
    platform: Platform,
    *,
    seconds: float | None = None,
    limit_s: float = LIMIT_S,
    cancelled: Callable[[], bool] = lambda: False,
) -> Link:
    """Sums tensors over the devices for some seconds. Blocks; may be called from any thread.

    Args:
        devices: Two or more.
        platform: This machine.
        seconds: How long to measure; None: `SECONDS`.
        limit_s: After that everything started is ended, whatever it is doing.
        cancelled: Asked now and then; True ends the measurement.

    Raises:
        ConfigError, PreflightError: See `core.launch.plan.plan_link_test`.
        LinkTestError: It failed, took too long, or was cancelled.
    """

    def waiting() -> None:
        if cancelled():
            raise LinkTestError("It was cancelled.", "You can measure again at any time.")

    with tempfile.TemporaryDirectory(prefix="rankdeck-link-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        rendezvous = rendezvous_folder(folder) / f".rendezvous-{secrets.token_hex(4)}"
        backend, commands = plan_link_test(
            devices,
            platform,
            folder,
            rendezvous,
            str(training_python().executable),
            SECONDS if seconds is None else seconds,
        )
        with ProcessTree() as tree:
            children = [
                tree.spawn(command.argv, command.environment(os.environ), command.cwd, command.log)
                for command in commands
            ]
            wait_until_ended(children, limit_s, waiting)
            values = _result(children, commands, limit_s)
        with contextlib.suppress(OSError):  # a scanner holds it, and nothing reads it any more
            rendezvous.unlink(missing_ok=True)
    more = [values.get(name) for name in ("shared_mb_per_s", "sharded_mb_per_s", "sharded_latency_s")]
    return Link(values["mb_per_s"], values["latency_s"], len(devices), backend, *more)


def known_link(devices: Sequence[Device], platform: Platform, folder: Path) -> Link | None:
    """What `keep_link` kept in the folder of runs for exactly these devices and this torch; None if nothing."""
    try:
        return read_record(Link, _kept(folder).get(_key(devices, platform)))
    except RecordError:
        return None


def keep_link(link: Link, devices: Sequence[Device], platform: Platform, folder: Path) -> None:
    """Keeps what was measured for `known_link`; says nothing when the folder cannot be written."""
    links = {**_kept(folder), _key(devices, platform): dataclasses.asdict(link)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / _KEPT_FILE, json.dumps({"format": _FORMAT, "version": 1, "links": links}, indent=2))
    except (OSError, RankdeckError):
        return  # it is measured again when it is needed again


def _result(children: Sequence[Child], commands: Sequence[RankCommand], limit_s: float) -> dict[str, Any]:
    """What rank 0 found; the first rank that failed decides the words."""
    answers = [read_answer(child) for child in children]
    for command, child, answer in zip(commands, children, answers, strict=True):
        if child.poll() not in (None, 0):
            error = error_in(answer.values or {}, LinkTestError)
            cause = f"The process on {command.device.uuid} {answer.failure}."
            raise error or LinkTestError(cause, "Check this machine: rankdeck doctor")
    if not all(answer.in_time for answer in answers):
        raise LinkTestError(
            f"The ranks did not finish within {limit_s:g} s.", "Close other programs and measure again."
        )
    found = answers[0].values or {}
    if "mb_per_s" not in found:
        raise LinkTestError("The ranks exited without a result.", "Check this machine: rankdeck doctor")
    return found


def _key(devices: Sequence[Device], platform: Platform) -> str:
    return " ".join([f"torch-{platform.torch_version}", *sorted(device.uuid for device in devices)])


def _kept(folder: Path) -> dict[str, Any]:
    try:
        document = parse_json(read_utf8(folder / _KEPT_FILE))
    except (OSError, ValueError):
        return {}
    links = document.get("links") if isinstance(document, dict) and document.get("format") == _FORMAT else None
    return links if isinstance(links, dict) else {}
