"""A Python without PyTorch starts a run that another one trains, as the installed window does."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from core.run_folder.store import RunStore, list_runs
from core.training_python import VARIABLE
from tests.helpers.hosted_run import write_text

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

ROOT = Path(__file__).resolve().parents[3]
TRAINS_ALONE = ("torch", "deepspeed", "transformers", "peft", "safetensors")


@pytest.fixture
def window_packages(tmp_path: Path) -> Path:
    """A folder of packages without PyTorch, by links to those of this Python."""
    folder = tmp_path / "packages"
    folder.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith(TRAINS_ALONE) and path.suffix != ".pth":
            (folder / path.name).symlink_to(path)
    return folder


@pytest.mark.skipif(sys.platform == "win32", reason="the installed program is tried there: installer/windows/smoke.py")
def test_a_run_is_started_without_torch_and_trained_with_it(tmp_path: Path, window_packages: Path) -> None:
    text, runs_dir = write_text(tmp_path / "text.txt"), tmp_path / "runs"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(window_packages)]), "PYTHONNOUSERSITE": "1"}
    train = ("-m", "core", "train", "--devices", "cpux2", "--mode", "ddp", "--steps", "4", "--dataset-file", str(text))
    small = ("--set", "n_layer=1", "--set", "n_head=2", "--set", "n_embd=16", "--seq-len", "16")
    # -S: no site-packages, so torch cannot be imported.
    command = [sys.executable, "-S", *train, *small, "--runs-dir", str(runs_dir)]
    env.pop(VARIABLE, None)
    refused = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert refused.returncode != 0 and "PyTorch is not installed" in refused.stderr
    assert not list_runs(runs_dir)

    env[VARIABLE] = sys.executable
    trained = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert trained.returncode == 0, trained.stdout + trained.stderr
    (entry,) = list_runs(runs_dir)
    assert entry.state is not None and entry.state.state == "finished"
    assert RunStore(entry.path).model.is_file()
