"""What an environment is made of."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from core.environments.wanted import BUILDS, OFFERED, default_name, list_extras, requirements, wanted_for
from core.errors import PreflightError, UsageError
from core.machine.packages import find_extras
from core.machine.torch_builds import ROCM_TAG, Card, NvidiaDriver
from core.recipes.catalog import find_recipes

ADA = NvidiaDriver(580, (Card("NVIDIA L4", (8, 9)),))


def test_the_windows_own_packages_are_not_in_it() -> None:
    found = requirements(
        ["torch>=2.7", "PySide6-Essentials>=6.7", "pyqtgraph>=0.14", "deepspeed==0.16.5; x", "nvidia-ml-py>=12"],
        {"rl": ("gymnasium>=1.0",), "hf": ("peft>=0.15", "torch>=2.7")},
        ["hf"],
    )
    assert found == ("torch>=2.7", "nvidia-ml-py>=12", "peft>=0.15")


def test_it_holds_what_ranks_need_and_the_extras() -> None:
    wanted = wanted_for(Path("x"), "auto", ["hf", "bpe", "hf"], ADA, None, None)
    assert wanted.extras == ("bpe", "hf")
    names = {line.split(">")[0].split("=")[0] for line in wanted.requirements}
    assert {"torch", "numpy", "safetensors", "psutil", "orjson", "transformers", "tokenizers"} <= names
    assert wanted.constraints.is_file()
    assert set(OFFERED) <= set(find_extras())


@pytest.mark.parametrize("build", BUILDS)
def test_the_build_is_the_one_that_was_asked_for(build: str) -> None:
    if build == ROCM_TAG and sys.platform != "linux":
        with pytest.raises(PreflightError, match="for Linux only"):
            wanted_for(Path("x"), build, [], ADA, None, None)
        return
    sources = wanted_for(Path("x"), build, [], ADA, None, None).torch
    tag = {"auto": "cu130"}.get(build, build)
    if build == "cpu" and sys.platform == "win32":
        assert sources[0].requirement == "torch==2.13.0"
    else:
        assert sources[0].requirement == f"torch==2.13.0+{tag}"
    assert default_name(build, ADA) == f"torch-2.13.0-{tag}"
    assert default_name("auto", None) == "torch-2.13.0-cpu"


def test_an_extra_that_does_not_exist_is_named() -> None:
    for name in ("absent", "test"):
        with pytest.raises(UsageError, match="no extra"):
            wanted_for(Path("x"), "auto", [name], None, None, None)


def test_each_extra_names_the_recipes_that_need_it() -> None:
    extras = {extra.name: extra for extra in list_extras(find_recipes(), find_extras())}
    assert tuple(extras) == OFFERED
    assert "Hugging Face causal LM" in extras["hf"].note and "PPO" in extras["rl"].note
    assert extras["bpe"].note == ""
