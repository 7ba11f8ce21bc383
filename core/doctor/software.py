"""Checks of the Python environment: PyTorch's build, what connects devices, Qt, recipes. Nothing is imported."""

from __future__ import annotations

import re
import sys
from typing import Final

from core.doctor.finding import SOFTWARE, Finding, Topic
from core.errors import RankdeckError
from core.launch.mode import check_gloo
from core.launch.preflight import check_torch
from core.machine.cuda_torch import GOOD_TORCH
from core.machine.packages import installed_requires, installed_version
from core.machine.platform import Platform
from core.recipes.catalog import find_recipes
from core.training_python import own_python, training_python

OLDEST_PYTHON: Final = (3, 11)
PYTHON: Final = Topic("python", "Python", SOFTWARE, "Rankdeck and its ranks run in this interpreter.")
TORCH: Final = Topic("torch", "PyTorch", SOFTWARE, "Ranks train with this build; its CUDA version decides about GPUs.")
GLOO: Final = Topic(
    "gloo", "Several devices", SOFTWARE, "DDP, ZeRO, FSDP and synchronised runs exchange tensors over NCCL or gloo."
)
ZERO: Final = Topic("zero", "ZeRO", SOFTWARE, "DeepSpeed shards a model's state; PyTorch's own engine does it too.")
TORCHVISION: Final = Topic(
    "torchvision", "torchvision", SOFTWARE, "One for another PyTorch keeps Hugging Face models from loading."
)
WINDOW: Final = Topic("window", "Window", SOFTWARE, "The window is drawn by Qt; the command line does without it.")
RECIPES: Final = Topic("recipes", "Recipes", SOFTWARE, "A recipe that cannot be read is not offered in New run.")
_EXACT: Final = re.compile(r"torch\s*\(?==\s*([\w.+]+)")


def check_python(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    """Whether this Python is new enough."""
    text = f"Python {'.'.join(map(str, version))} ({sys.executable})"
    if version[:2] < OLDEST_PYTHON:
        return PYTHON.fail(text, "Install Python 3.11 or newer.")
    return PYTHON.ok(text)


def check_torch_build(platform: Platform) -> Finding:
    """Whether there is a usable PyTorch; it is not imported."""
    try:
        check_torch(platform)
    except RankdeckError as error:
        return TORCH.fail(error.cause, error.next_step, "copy_command", good_torch_command(), cause=error.title)
    build = "CPU build" if platform.is_cpu_only else f"for {platform.build}"
    return TORCH.ok(f"version {platform.torch_version}, {build}")


def check_connections(platform: Platform) -> Finding:
    """Whether this PyTorch can connect several devices."""
    try:
        check_gloo(platform)
    except RankdeckError as error:
        return GLOO.warn(error.cause, error.next_step, "copy_command", good_torch_command(), cause=error.title)
    if platform.torch_version is None:
        return GLOO.not_tried("not known without PyTorch", f"Install torch {GOOD_TORCH}.")
    return GLOO.ok("connected over NCCL and gloo" if platform.has_nccl else "connected over gloo")


def check_zero_engine(platform: Platform) -> Finding:
    """The engine that ZeRO uses by default."""
    if platform.deepspeed_version is not None:
        return ZERO.ok(f"DeepSpeed {platform.deepspeed_version}")
    return ZERO.ok("PyTorch's engine (DeepSpeed is not installed)")


def check_torchvision(platform: Platform) -> Finding:
    """Whether torchvision was built for another torch: then `import transformers` fails."""
    version = installed_version("torchvision")
    if version is None or platform.torch_version is None:
        return TORCHVISION.ok("not installed (optional)")
    wanted = next((found[1] for line in installed_requires("torchvision") if (found := _EXACT.match(line))), None)
    public, _, build = platform.torch_version.partition("+")
    other_build = build == "cpu" and "+" not in version and sys.platform != "darwin"
    if other_build or (wanted is not None and wanted.partition("+")[0] != public):
        return TORCHVISION.warn(
            f"version {version} doesn't match torch {platform.torch_version}; importing transformers may fail",
            "Remove it (pip uninstall torchvision) or install the matching version from the same index as torch.",
            "copy_command",
            f'"{training_python().executable}" -m pip uninstall torchvision',
        )
    return TORCHVISION.ok(f"version {version}")


def check_window(python: tuple[int, ...] = sys.version_info[:2]) -> Finding:
    """Whether Qt is installed, and not the version that crashes on Python 3.11."""
    version = installed_version("PySide6-Essentials", own_python()) or installed_version("PySide6", own_python())
    pip = f'"{sys.executable}" -m pip install PySide6-Essentials'
    if version is None:
        step = "Install it: pip install PySide6-Essentials"
        return WINDOW.warn("PySide6 is not installed", step, "copy_command", pip)
    if version == "6.12.0" and python == (3, 11):
        return WINDOW.fail(
            "PySide6 6.12.0 crashes after a while on Python 3.11",
            "Install another version: pip install PySide6-Essentials==6.11.3",
            "copy_command",
            f"{pip}==6.11.3",
        )
    return WINDOW.ok(f"PySide6 {version}")


def check_recipes() -> Finding:
    """Whether every recipe can be used."""
    found = find_recipes()
    broken = [f"{recipe.name}: {recipe.problem}" for recipe in found if recipe.problem]
    if broken:
        return RECIPES.warn(f"cannot be read: {'; '.join(broken)}", "Correct their recipe.toml.")
    return RECIPES.ok(f"{len(found)} can be used: {', '.join(recipe.name for recipe in found)}")


def good_torch_command() -> str:
    """The command that installs a PyTorch that works, in place of this one."""
    return f'"{training_python().executable}" -m pip install --force-reinstall torch=={GOOD_TORCH}'
