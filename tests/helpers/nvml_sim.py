"""GPUs on a machine without any, for tests: a library that answers NVML's own calls as a scenario file says.

The simulator is a folder beside the repository (``../shared/tools/nvml-sim``, or `RANKDECK_NVML_SIM`); it needs
Linux and gcc. A program has to be started under it, because its library must be found before any other.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

REPOSITORY: Final = Path(__file__).resolve().parents[2]
SIMULATOR: Final = Path(os.environ.get("RANKDECK_NVML_SIM") or REPOSITORY.parent / "shared" / "tools" / "nvml-sim")

NEEDS_SIMULATOR: Final = (
    pytest.mark.skipif(sys.platform != "linux", reason="the NVML simulator is a Linux library"),
    pytest.mark.skipif(shutil.which("gcc") is None, reason="the NVML simulator is compiled with gcc"),
    pytest.mark.skipif(not SIMULATOR.is_dir(), reason=f"there is no NVML simulator in {SIMULATOR}"),
)


def pretend_cuda_torch(folder: Path) -> dict[str, str]:
    """An environment in which torch looks like a CUDA build to who reads its version and does not import it."""
    (folder / "torch").mkdir(parents=True, exist_ok=True)
    (folder / "torch" / "__init__.py").write_text("", encoding="utf-8")
    (folder / "torch" / "version.py").write_text('__version__ = "2.13.0+cu130"\ncuda = "13.0"\n', encoding="utf-8")
    metadata = folder / "torch-2.13.0+cu130.dist-info" / "METADATA"
    metadata.parent.mkdir(exist_ok=True)
    metadata.write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0+cu130\n", encoding="utf-8")
    return {"PYTHONPATH": str(folder)}


def with_gpus(
    scenario: str,
    arguments: Sequence[str],
    *,
    speed: float = 1,
    env: Mapping[str, str] | None = None,
    limit_s: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Runs Python with a scenario's GPUs.

    Args:
        scenario: A file, or the name of one of the simulator's own.
        arguments: For the interpreter.
        speed: Seconds of the scenario in a second.
        env: Added to the environment.
        limit_s: It is killed after so long.
    """
    argv = [str(SIMULATOR / "simulate_gpus.sh"), scenario, "--speed", str(speed), "--", sys.executable, *arguments]
    return subprocess.run(
        argv,
        cwd=REPOSITORY,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
    )
