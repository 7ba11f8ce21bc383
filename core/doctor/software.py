"""Checks of the Python environment: PyTorch's build, torchvision, recipes. Nothing is imported."""

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
from core.training_python import training_python

PYTHON: Final = Topic("python", "Python", SOFTWARE, "Rankdeck and its ranks run in this interpreter.")
TORCH: Final = Topic("torch", "PyTorch", SOFTWARE, "Ranks train with this build; its CUDA version decides about GPUs.")
GLOO: Final = Topic(
    "gloo", "Several devices", SOFTWARE, "DDP, ZeRO, FSDP and synchronised runs exchange tensors over NCCL or gloo."
)
TORCHVISION: Final = Topic(
    "torchvision",
    "torchvision",
    SOFTWARE,
    "One that was built for another PyTorch keeps Hugging Face models from loading.",
)
RECIPES: Final = Topic("recipes", "Recipes", SOFTWARE, "A recipe that cannot be read is not offered in New run.")
_EXACT: Final = re.compile(r"torch\s*\(?==\s*([\w.+]+)")


def check_python() -> Finding:
    return PYTHON.ok(f"Python {'.'.join(map(str, sys.version_info[:3]))} ({sys.executable})")


def check_torch_build(platform: Platform) -> Finding:
    try:
        check_torch(platform)
    except RankdeckError as error:
        return TORCH.fail(error.cause, error.next_step, "copy_command", good_torch_command(), cause=error.title)
    build = "CPU build" if platform.is_cpu_only else f"for {platform.build}"
    return TORCH.ok(f"version {platform.torch_version}, {build}")


def check_connections(platform: Platform) -> Finding:
    try:
        check_gloo(platform)
    except RankdeckError as error:
        return GLOO.warn(error.cause, error.next_step, "copy_command", good_torch_command(), cause=error.title)
    if platform.torch_version is None:
        return GLOO.not_tried("not known without PyTorch", f"Install torch {GOOD_TORCH}.")
    return GLOO.ok("connected over NCCL and gloo" if platform.has_nccl else "connected over gloo")


def check_torchvision(platform: Platform) -> Finding:
    """Find a torchvision for another torch: then `import transformers` fails."""
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


def check_recipes() -> Finding:
    found = find_recipes()
    broken = [f"{recipe.name}: {recipe.problem}" for recipe in found if recipe.problem]
    if broken:
        return RECIPES.warn(f"cannot be read: {'; '.join(broken)}", "Correct their recipe.toml.")
    return RECIPES.ok(f"{len(found)} can be used: {', '.join(recipe.title for recipe in found)}")


def good_torch_command() -> str:
    return f'"{training_python().executable}" -m pip install --force-reinstall torch=={GOOD_TORCH}'
