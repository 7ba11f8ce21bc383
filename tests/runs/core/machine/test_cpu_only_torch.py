"""GPUs beside a PyTorch that is built for the CPU only: refused before the start, and never chosen by themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Final, TypeVar

import pytest

from core.config.mode import Mode
from core.errors import PreflightError
from core.launch.mode import choose_devices, recipe_platform
from core.machine.devices import Device
from core.machine.platform import Platform, this_platform
from core.recipes.catalog import get_recipe
from tests.helpers.nvml_sim import NEEDS_SIMULATOR, with_gpus

GPUS = (Device("GPU-6ada6000-1111", "cuda", 0, "RTX 6000 Ada"), Device("GPU-40904090-2222", "cuda", 1, "RTX 4090"))
CPU_BUILD = Platform("linux", "2.13.0+cpu", None, 4)
CUDA_BUILD = Platform("linux", "2.13.0+cu130", "13.0", 4)
REMEDY: Final = "pip install --force-reinstall torch==2.13.0 --index-url https://download.pytorch.org/whl/cu130"


@pytest.mark.windows
def test_auto_takes_the_cpu_and_says_why() -> None:
    devices, (note,) = choose_devices(("auto",), Mode.AUTO, GPUS, CPU_BUILD)
    assert [device.uuid for device in devices] == ["cpu:0"]
    assert note.startswith("The run trains on the CPU.") and "2.13.0+cpu" in note and REMEDY in note
    assert choose_devices(("auto",), Mode.AUTO, GPUS, CUDA_BUILD) == (GPUS, ())


@pytest.mark.windows
@pytest.mark.parametrize("texts", [("cuda:1",), ("GPU-6ada",), ("cpu:1", "cuda:0")])
def test_a_gpu_that_is_named_is_refused_with_the_remedy(texts: tuple[str, ...]) -> None:
    with pytest.raises(PreflightError) as caught:
        choose_devices(texts, Mode.AUTO, GPUS, CPU_BUILD)
    assert caught.value.title == "This PyTorch cannot use a GPU"
    assert REMEDY in caught.value.next_step


@pytest.mark.windows
def test_a_script_has_a_torch_of_its_own() -> None:
    platform = recipe_platform(get_recipe("script"), CPU_BUILD)
    assert choose_devices(("auto",), Mode.AUTO, GPUS, platform) == (GPUS, ())


_T = TypeVar("_T")


def _simulated(test: _T) -> _T:
    """The command line on simulated GPUs, with the torch that the tests have."""
    for mark in (*NEEDS_SIMULATOR, pytest.mark.skipif(not this_platform().is_cpu_only, reason="a CUDA build of torch")):
        test = mark(test)
    return test


@_simulated
def test_train_on_a_named_gpu_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    words = ["-m", "core", "train", "--devices", "cuda:0", "--steps", "2", "--runs-dir", str(runs)]
    done = with_gpus("two_workstation", words)
    assert done.returncode == PreflightError.exit_code
    title, cause, next_step = done.stderr.splitlines()
    assert title == "This PyTorch cannot use a GPU" and "RTX 6000 Ada" in cause and REMEDY in next_step
    assert not runs.exists()
