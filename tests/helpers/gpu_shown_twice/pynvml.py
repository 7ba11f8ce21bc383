"""NVML's bindings, in which the first GPU is listed a second time under a UUID of its own.

For tests of two ranks on a machine with one GPU: this folder is put in front of `PYTHONPATH`. All figures are the
card's own. `sitecustomize`, beside this file, gives a rank that was put on the second one the real card.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

_elsewhere = [folder for folder in sys.path if Path(folder or ".").resolve() != Path(__file__).resolve().parent]
_found = PathFinder.find_spec("pynvml", _elsewhere)
assert _found is not None and _found.origin is not None
_spec = importlib.util.spec_from_file_location("_real_pynvml", _found.origin)
assert _spec is not None and _spec.loader is not None
_real: Any = importlib.util.module_from_spec(_spec)
sys.modules["_real_pynvml"] = _real  # it looks itself up there
_spec.loader.exec_module(_real)
globals().update({name: value for name, value in vars(_real).items() if not name.startswith("__")})

TWIN = "GPU-twin-"


def nvmlDeviceGetCount() -> int:
    return int(_real.nvmlDeviceGetCount()) + 1


def nvmlDeviceGetHandleByIndex(index: int) -> Any:
    """The last one is the first again."""
    if index < _real.nvmlDeviceGetCount():
        return _real.nvmlDeviceGetHandleByIndex(index)
    return _twin(_real.nvmlDeviceGetHandleByIndex(0))


def nvmlDeviceGetHandleByUUID(uuid: str) -> Any:
    if not uuid.startswith(TWIN):
        return _real.nvmlDeviceGetHandleByUUID(uuid)
    return _twin(_real.nvmlDeviceGetHandleByUUID(uuid.replace(TWIN, "GPU-")))


def nvmlDeviceGetUUID(handle: Any) -> str:
    """The second one's begins in a way of its own."""
    uuid = str(_real.nvmlDeviceGetUUID(handle))
    return uuid.replace("GPU-", TWIN) if getattr(handle, "is_twin", False) else uuid


def _twin(handle: Any) -> Any:
    handle.is_twin = True
    return handle
