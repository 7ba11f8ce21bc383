"""Environments beside each other: `environment.json` of each run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from core.compare.row import Row
from core.errors import StateFileError
from core.files.atomic import read_json
from core.formatting import UNKNOWN
from core.run_folder.store import RunStore

MAX_TEXT: Final = 200
_SHOWN: Final = (
    ("torch", "PyTorch"),
    ("torch_cuda", "CUDA of PyTorch"),
    ("torch_rocm", "ROCm of PyTorch"),
    ("python", "Python"),
    ("devices", "Device names"),
    ("driver", "Driver"),
    ("backend", "Backend in use"),
    ("os", "Operating system"),
    ("cpu", "CPU"),
    ("cores", "CPU cores"),
    ("rankdeck", "Rankdeck"),
)


def read_environment(store: RunStore) -> dict[str, Any]:
    """What a run's `environment.json` says; nothing where it cannot be read."""
    try:
        document = read_json(store.environment)
    except StateFileError:
        return {}
    return document if isinstance(document, dict) else {}


def environment_rows(runs: Sequence[Mapping[str, Any]]) -> tuple[Row, ...]:
    """What the runs ran with; lines that no run has anything for are left out."""
    rows = []
    for name, label in _SHOWN:
        values = tuple(_device_names(run.get(name)) if name == "devices" else run.get(name) for run in runs)
        rows.append(Row(name, label, values, tuple(_text(value) for value in values)))
    return tuple(row for row in rows if not row.is_empty)


def _device_names(value: object) -> str | None:
    """ "2 × NVIDIA RTX 4090, CPU"."""
    devices = value if isinstance(value, list) else []
    names = Counter(str(device.get("name")) for device in devices if isinstance(device, dict))
    return ", ".join(f"{times} × {name}" if times > 1 else name for name, times in names.items()) or None


def _text(value: object) -> str:
    return UNKNOWN if value is None or value == "" else str(value)[:MAX_TEXT]
