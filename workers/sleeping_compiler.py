"""Keeps PyTorch's compiler from being imported by a rank that compiles nothing.

`torch.optim`, `DistributedDataParallel` and FSDP2 ask `torch._dynamo` a few questions whose answers never change as
long as nothing is compiled ("break the graph here", "leave this function alone"). To ask, they import it, with sympy
and all: half of a rank's start on a fast disk, and about 70 MiB of memory a rank.

Until somebody wants more of it, a module that knows just those answers stands in its place. The first other question,
such as `torch.compile`, imports the real one, and nothing remains of this. Torch versions that ask other questions
therefore start slower, not wrongly.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import torch

_NAME: Final = "torch._dynamo"
_SETTINGS: Final = "torch._dynamo.config"
_NOTE: Final = "__dynamo_disable"  # where torch keeps what `disable` gave it
_ASKED_ANEW: Final = {"recursive": True, "reason": "skipping FSDP hooks"}
"""FSDP2 does not keep what `disable` gives it, but asks before every call."""


def let_compiler_sleep() -> None:
    """Does so from here on; nothing happens where the compiler is imported already."""
    if _NAME not in sys.modules:
        asleep = _Asleep()
        sys.modules[_NAME] = asleep
        torch._dynamo = asleep


def let_settings_be_read() -> None:
    """Lets the compiler's settings be imported without the compiler: FSDP2's tensors look one up, in a file of its own.

    Nothing happens where the compiler is awake, or where this version keeps its settings elsewhere.
    """
    if isinstance(sys.modules.get(_NAME), _Asleep) and _SETTINGS not in sys.modules:
        spec = spec_from_file_location(_SETTINGS, Path(torch.__file__).parent / "_dynamo" / "config.py")
        if spec is None or spec.loader is None:
            return
        settings = module_from_spec(spec)
        sys.modules[_SETTINGS] = settings  # whoever wakes the compiler finds this one there, and what was set in it
        try:
            spec.loader.exec_module(settings)
        except (OSError, ImportError):
            del sys.modules[_SETTINGS]
            return
        torch._dynamo.config = settings


class _Asleep(ModuleType):
    """Stands for `torch._dynamo`."""

    def __init__(self) -> None:
        super().__init__(_NAME)
        self._left_alone: list[Callable[..., Any]] = []
        self.utils = _Part("utils", get_optimize_ddp_mode=lambda: "ddp_optimizer")  # its configuration's default
        self.trace_rules = _Part("trace_rules", clear_lru_cache=lambda: None)

    def graph_break(self, *_: Any, **__: Any) -> None:
        """Where nothing is compiled, there is no graph."""

    def disable(self, function: Any = None, *arguments: Any, **options: Any) -> Any:
        """Keeps the compiler out of a function, for `torch._compile`, which can be told to ask again."""
        if options == _ASKED_ANEW:
            return function
        if function is None or options != {"wrapping": False}:
            return _awake().disable(function, *arguments, **options)
        self._left_alone.append(function)
        return function

    def wake(self) -> None:
        """Makes room for the real module; who asked for `disable` asks it the next time."""
        del sys.modules[_NAME]
        del torch._dynamo
        for function in self._left_alone:
            vars(function).pop(_NOTE, None)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__path__":
            raise AttributeError(name)  # `inspect` asks every module for its file; that wants nothing of the compiler
        return getattr(_awake(), name)


class _Part:
    """Stands for a module in `torch._dynamo` of which a few functions are known."""

    def __init__(self, name: str, **known: Callable[[], Any]) -> None:
        self._name = name
        vars(self).update(known)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(importlib.import_module(f"{_NAME}.{self._name}"), name)


def _awake() -> ModuleType:
    standing = sys.modules.get(_NAME)
    if isinstance(standing, _Asleep):
        standing.wake()
    return importlib.import_module(_NAME)
