"""Diagnostics: one ZIP file for a report of a problem, without secrets."""

from __future__ import annotations

import json
import platform as python_platform
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from core import __version__
from core.doctor.finding import Finding
from core.doctor.secrets import without_secrets
from core.errors import RankdeckError, UsageError
from core.files.atomic import write_atomic
from core.held_files import open_binary
from core.machine.packages import installed_version
from core.machine.platform import Platform
from core.parsing import ParseError, parse_json
from core.run_folder.store import RunStore, list_runs

# Of the newest runs, files are taken.
RUNS: Final = 5
# Of each log.
TAIL_BYTES: Final = 32 << 10
# At the end of metrics.jsonl: there events are looked for.
EVENTS_BYTES: Final = 1 << 20
MOST_LOGS: Final = 8
MOST_EVENTS: Final = 200
_WHOLE_BYTES: Final = 128 << 10
# Lines of metrics.jsonl that are left out: there are millions, or they hold texts of the person's own.
_STEP_EVENTS: Final = ("step", "device", "host", "sample", "ledger")
_PACKAGES: Final = (
    "torch", "numpy", "safetensors", "PySide6-Essentials", "pyqtgraph", "psutil", "nvidia-ml-py", "orjson", "PyYAML",
    "deepspeed", "transformers", "peft", "tokenizers", "datasets", "pyarrow", "torchvision", "gymnasium",
)  # fmt: skip
_DATE: Final = (1980, 1, 1, 0, 0, 0)
ABOUT: Final = """Diagnostics of Rankdeck, made by `rankdeck doctor --zip` or in the window.

doctor.json     the checks of this machine
versions.json   versions of Python, the system and packages
settings.json   settings of the window, or variables of Rankdeck
runs/           of the newest runs: state, settings, events, ends of logs

Keys, tokens and passwords were replaced by <secret>. Paths and names are as they were.
"""


def gather(
    findings: Sequence[Finding],
    runs_dir: Path | None,
    platform: Platform,
    settings: Mapping[str, Any],
) -> dict[str, str]:
    """Collect the texts of all files by their paths in the ZIP, without secrets.

    Blocks for as long as disks take; no folder of runs leaves them out.
    """
    found = [
        ("doctor.json", _json([finding.as_dict() for finding in findings])),
        ("versions.json", _json(_versions(platform))),
        ("settings.json", _json(settings)),
        *(_of_runs(runs_dir) if runs_dir is not None else ()),
    ]
    return {"about.txt": ABOUT, **{name: without_secrets(text) for name, text in found}}


def write_zip(files: Mapping[str, str], path: Path) -> None:
    """Write the files into a ZIP, which is whole or not there.

    Raises:
        UsageError: A folder has its name.
        PreflightError: Disk full, no permission, drive missing.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a folder.", "Name a file, for example diagnostics.zip.")

    def fill(file: IO[bytes]) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in files.items():
                archive.writestr(zipfile.ZipInfo(name, _DATE), text.encode("utf-8"), zipfile.ZIP_DEFLATED)

    write_atomic(path, fill)


def _versions(platform: Platform) -> dict[str, Any]:
    return {
        "rankdeck": __version__,
        "python": python_platform.python_version(),
        "system": python_platform.system(),
        "release": python_platform.release(),
        "version": python_platform.version(),
        "machine": python_platform.machine(),
        "torch": platform.torch_version,
        "cuda_build": platform.cuda_build,
        "cores": platform.physical_cores,
        "packages": {name: version for name in _PACKAGES if (version := installed_version(name)) is not None},
    }


def _of_runs(runs_dir: Path) -> Iterator[tuple[str, str]]:
    """Yield name and text of each file."""
    try:
        entries = list_runs(runs_dir)[:RUNS]
    except (RankdeckError, OSError) as error:
        yield "runs/unreadable.txt", f"{error}\n"
        return
    for number, entry in enumerate(entries, 1):
        store, folder = RunStore(entry.path), f"runs/{number}-{entry.path.name}"
        for path in (store.state_json, store.run_toml, store.environment):
            if path.is_file():
                yield f"{folder}/{path.name}", tail(path, _WHOLE_BYTES)
        yield f"{folder}/events.jsonl", "".join(f"{line}\n" for line in _events(store.metrics))
        try:
            logs = sorted(store.logs.glob("*.log"))[:MOST_LOGS]
        except OSError:
            continue
        for log in logs:
            yield f"{folder}/logs/{log.name}", tail(log, TAIL_BYTES)


def tail(path: Path, limit: int) -> str:
    """Read the end of a file, from the beginning of a line: half a secret is not recognised."""
    try:
        with open_binary(path) as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - limit))
            data = file.read(limit)
    except OSError as error:
        return f"could not be read: {error.strerror}\n"
    text = data.decode("utf-8", "replace")
    if size <= limit:
        return text
    return f"… the last {limit >> 10} KiB of {size >> 10}\n" + text.partition("\n")[2]


def _events(metrics: Path) -> list[str]:
    """Read a run's newest events without its steps: launches, checkpoints, alerts, failures."""
    found = []
    for line in tail(metrics, EVENTS_BYTES).splitlines():
        try:
            values = parse_json(line)
        except ParseError:
            continue
        if isinstance(values, dict) and values.get("event") not in _STEP_EVENTS:
            found.append(line)
    return found[-MOST_EVENTS:]


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str) + "\n"
