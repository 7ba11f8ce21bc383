"""Each pure module has a page of its own tests: `core/config/sync.py` has `tests/unit/core/config/test_sync.py`.

A module is pure if it computes: it imports no library that starts, calls or waits for something, draws or holds
tensors, nor a function of a module of ours that does. Types and constants of such a module may be imported, so what
decides about processes or devices can be pure. A module without a function declares only, and needs no page.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("app", "core", "workers", "installer")
ACTING = {
    *("asyncio", "concurrent", "ctypes", "fcntl", "mmap", "msvcrt", "multiprocessing", "psutil", "pynvml", "queue"),
    *("selectors", "signal", "socket", "socketserver", "subprocess", "threading", "winreg"),
    *("PySide6", "shiboken6", "torch", "deepspeed", "transformers"),
}
# Pure modules that are tested in a file of another name, or with torch; `.*`: all of a folder.
ELSEWHERE = {
    "core.machine.devices.gpu_driver": "tests/unit/core/machine/devices/test_gpu_list.py",  # declares
    "core.machine.devices.own_gpu": "tests/runs/core/machine/devices/test_amd.py",  # asks a driver
    "core.checkpoints.checkpoint_choice": "tests/unit/core/resume/test_planner.py",  # on real folders of runs
    "core.host.watches.watch": "tests/unit/core/host/watches/test_hang_watch.py",  # declares
    "core.protocol.messages": "tests/unit/core/protocol/test_codec.py",  # declares, apart from its decorator
    "core.resume.plan": "tests/unit/core/resume/test_planner.py",  # a plan as the planner makes it
    "installer.wheel_hook": "tests/runs/installer/test_wheel.py",  # hatchling calls it
    "workers.data.reading.*": "tests/unit/workers/data/test_formats.py",  # the parts of one reader, on whole files
    "workers.recipe_api": "tests/training/workers/test_recipe_api.py",  # its last name loads torch
    "workers.recipes.actv1.check": "tests/training/workers/recipes/actv1/test_tokens.py",  # tokenizers of models
    "workers.recipes.actv1.tokens": "tests/training/workers/recipes/actv1/test_tokens.py",
    "workers.recipes.hf_causal_lm.tokens": "tests/training/workers/recipes/hf_causal_lm/test_tokens.py",
    "workers.script.printed.*": "tests/unit/workers/script/test_prints.py",  # the parts of one parser, on whole lines
    "workers.sdk.rankdeck.recipe": "tests/runs/workers/script/test_sdk.py",  # what it says outside of Rankdeck
    "workers.strategies": "tests/training/workers/test_strategies.py",  # this and the next load torch by their types
    "workers.training.horizon": "tests/training/end2end/test_cli_train.py",
    "workers.training.session": "tests/training/end2end/test_cli_train.py",
}


class Modules:
    """The modules below a folder, by name, and what they import."""

    def __init__(self, root: Path) -> None:
        self.paths = {self._name(root, path): path for package in PACKAGES for path in (root / package).rglob("*.py")}
        self.nodes = {name: list(_run(path.read_text(encoding="utf-8"))) for name, path in self.paths.items()}
        self.imports = {name: list(self._imports(name)) for name in self.paths}

    def pure(self) -> list[str]:
        """Modules that compute, and have a function."""
        acting = {name for name, found in self.imports.items() if {item.split(".")[0] for item, _ in found} & ACTING}
        calls = {name: set(self._called(name)) for name in self.paths}
        while found := {name for name in calls.keys() - acting if calls[name] & acting}:
            acting |= found
        return sorted(name for name in self.paths.keys() - acting if self._has_function(name))

    def page(self, name: str) -> str:
        """Where its tests are."""
        *folders, last = name.split(".")
        return "/".join(("tests", "unit", *folders, f"test_{last}.py"))

    @staticmethod
    def _name(root: Path, path: Path) -> str:
        return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")

    def _called(self, name: str) -> Iterator[str]:
        """Modules of ours that it imports whole, or a function of."""
        for module, item in self.imports[name]:
            if f"{module}.{item}" in self.paths:
                yield f"{module}.{item}"
            elif module in self.paths and (not item or item[0].islower()):
                yield module

    def _imports(self, name: str) -> Iterator[tuple[str, str]]:
        """Modules, each with what is taken from it (empty: the module itself); not what is for type checkers only."""
        for node in self.nodes[name]:
            if isinstance(node, ast.Import):
                yield from ((found.name, "") for found in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from ((self._absolute(name, node), found.name) for found in node.names)

    def _absolute(self, name: str, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = name.split(".") if self.paths[name].name == "__init__.py" else name.split(".")[:-1]
        return ".".join([*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])])

    def _has_function(self, name: str) -> bool:
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        return not name.endswith("__main__") and any(isinstance(node, functions) for node in self.nodes[name])


def _run(text: str) -> Iterator[ast.AST]:
    """Every node of a module, without ``if TYPE_CHECKING``."""
    left: list[ast.AST] = [ast.parse(text)]
    while left:
        node = left.pop()
        if not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield node
            left.extend(ast.iter_child_nodes(node))


def covered(name: str) -> str | None:
    """The entry of `ELSEWHERE` that a module has."""
    return next((entry for entry in ELSEWHERE if fnmatchcase(name, entry)), None)


def test_each_pure_module_has_its_page() -> None:
    modules = Modules(ROOT)
    pure = modules.pure()
    assert len(pure) > 80
    assert [
        modules.page(name) for name in pure if not covered(name) and not (ROOT / modules.page(name)).is_file()
    ] == []
    assert ELSEWHERE.keys() == {covered(name) for name in pure} - {None}, "an entry that is not needed"
    assert [path for path in ELSEWHERE.values() if not (ROOT / path).is_file()] == []


@pytest.mark.parametrize(
    ("text", "is_pure"),
    [
        ("import math\ndef f(): ...", True),
        ("LIMIT = 3", False),  # declares only
        ("import subprocess\ndef f(): ...", False),
        ("def f():\n    from torch import nn", False),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\ndef f(): ...", True),
        ("from core.acts import LIMIT, Process\ndef f(): ...", True),
        ("from core.acts import start\ndef f(): ...", False),
        ("from core import acts\ndef f(): ...", False),
        ("from .acts import start\ndef f(): ...", False),
        ("from core.calls import begin\ndef f(): ...", False),
    ],
)
def test_what_is_pure(text: str, is_pure: bool, tmp_path: Path) -> None:
    (tmp_path / "core").mkdir()
    (tmp_path / "core" / "acts.py").write_text("import os, socket\ndef start(): ...", encoding="utf-8")
    (tmp_path / "core" / "calls.py").write_text("import core.acts\ndef begin(): ...", encoding="utf-8")
    (tmp_path / "core" / "made.py").write_text(text, encoding="utf-8")
    assert ("core.made" in Modules(tmp_path).pure()) is is_pure
