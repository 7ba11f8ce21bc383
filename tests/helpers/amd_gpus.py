"""AMD GPUs on a machine without any, for tests: a package `amdsmi` that answers with recorded values.

Nothing of it has been compared with a card: what an answer looks like comes from AMD's sources, and each file of
answers says from which.
"""

from __future__ import annotations

import ctypes.util
import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

PACKAGE: Final = Path(__file__).with_name("recorded_amdsmi") / "amdsmi"
ANSWERS: Final = Path(__file__).with_name("recorded_amdsmi") / "answers"
NEEDS_LINUX: Final = (pytest.mark.skipif(sys.platform != "linux", reason="AMD's amdsmi is for Linux"),)


def recorded(name: str) -> dict[str, Any]:
    """The answers of a machine: "radeon" or "instinct"."""
    answers: dict[str, Any] = json.loads((ANSWERS / f"{name}.json").read_text(encoding="utf-8"))
    return answers


def amd_gpus(folder: Path, answers: Mapping[str, Any]) -> dict[str, str]:
    """An environment in which `amdsmi` is installed and answers so; `folder` holds it."""
    if not (folder / "amdsmi").is_dir():
        shutil.copytree(PACKAGE, folder / "amdsmi")
        # Rankdeck looks for the library before it imports the package; any that loads will do.
        loadable = Path(next(iter(Path("/").glob(f"lib/*/{ctypes.util.find_library('c')}"))))
        (folder / "amdsmi" / "libamd_smi.so").symlink_to(loadable)
    file = folder / "answers.json"
    file.write_text(json.dumps(answers), encoding="utf-8")
    return {"PYTHONPATH": str(folder), "RECORDED_AMDSMI": str(file)}


def pretend_rocm_torch(folder: Path) -> None:
    """Makes torch look like a ROCm build to who reads its version and does not import it."""
    (folder / "torch").mkdir(parents=True, exist_ok=True)
    (folder / "torch" / "__init__.py").write_text("", encoding="utf-8")
    version = (
        "__version__ = '2.13.0+rocm7.2'\ncuda: Optional[str] = None\nhip: Optional[str] = '7.2.26015-fc0010cf6a'\n"
    )
    (folder / "torch" / "version.py").write_text(version, encoding="utf-8")
    metadata = folder / "torch-2.13.0+rocm7.2.dist-info" / "METADATA"
    metadata.parent.mkdir(exist_ok=True)
    metadata.write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0+rocm7.2\n", encoding="utf-8")
