"""Keeps PyTorch's compiler from being imported by a rank that compiles nothing.

`torch.optim`, `DistributedDataParallel` and FSDP2 ask `torch._dynamo` a few questions whose answers never change as
long as nothing is compiled ("break the graph here", "leave this function alone"). To ask, they import it, with sympy
and all: half of a rank's start on a fast disk, and about 70 MiB of memory a rank.

Until somebody wants more of it, a module that knows just those answers stands in its place, and lets those of its files
be imported that want nothing of the others. The first other question imports the real one, such as `torch.compile` of a
model; a function is compiled when it is first called, since DeepSpeed marks some that most runs never call.
Torch versions that ask other questions therefore start slower, not wrongly.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final
from weakref import WeakKeyDictionary

import torch

_NAME: Final = "torch._dynamo"
_STANDING_ALONE: Final = ("config", "_trace_wrapped_higher_order_op")
"""Files that import nothing else of the compiler: FSDP2's tensors look a setting up, transformers takes a class."""
_NOTE: Final = "__dynamo_disable"  # where torch keeps what `disable` gave it
_ASKED_ANEW: Final = {"recursive": True, "reason": "skipping FSDP hooks"}
"""FSDP2 does not keep what `disable` gives it, but asks before every call."""


def let_compiler_sleep() -> None:
    """Does so from here on; nothing happens where the compiler is imported already."""
    if _NAME not in sys.modules:
        asleep = _Asleep()
        sys.modules[_NAME] = asleep
        torch._dynamo = asleep
        torch.compile = asleep.compile
        sys.meta_path.insert(0, asleep.finder)


class _Asleep(ModuleType):
    """Stands for `torch._dynamo`."""

    def __init__(self) -> None:
        super().__init__(_NAME)
        self.__path__ = [str(Path(torch.__file__).parent / "_dynamo")]
        self.__spec__ = PathFinder.find_spec(_NAME, list(torch.__path__))  # somebody may look whether it is installed
        self.finder = _Finder()
        self._left_alone: list[Callable[..., Any]] = []
        self._marked: list[tuple[str, Any]] = []
        # Weakly: activation checkpointing asks about a function of its own in every step.
        self._late: WeakKeyDictionary[Callable[..., Any], Callable[[ModuleType], None]] = WeakKeyDictionary()
        self.utils = _Part("utils", get_optimize_ddp_mode=lambda: "ddp_optimizer")  # its configuration's default
        self.trace_rules = _Part("trace_rules", clear_lru_cache=lambda: None)
        self._compile: Callable[..., Any] = torch.compile

        @wraps(torch.compile)
        def compile_(model: Any = None, **options: Any) -> Any:
            return self._compile_once_called(model, options)

        self.compile = compile_

    def graph_break(self, *_: Any, **__: Any) -> None:
        """Where nothing is compiled, there is no graph."""

    def disable(self, function: Any = None, *arguments: Any, **options: Any) -> Any:
        """Keeps the compiler out of a function: `torch._compile` can be told to ask again, others are asked for."""
        if function is None:  # a decorator with arguments: asks whoever stands here once it is used
            return lambda decorated: sys.modules[_NAME].disable(decorated, *arguments, **options)
        if not isinstance(function, FunctionType):
            return _awake().disable(function, *arguments, **options)
        if options == _ASKED_ANEW:
            return function
        if options == {"wrapping": False}:
            self._left_alone.append(function)
            return function
        return self._left_alone_once_awake(function, lambda compiler: compiler.disable(function, *arguments, **options))

    def _compile_once_called(self, model: Any, options: Mapping[str, Any]) -> Any:
        """Stands for `torch.compile`: a function is compiled by its first call, anything else at once."""
        if model is None:  # a decorator with arguments: asks whoever stands here once it is used
            return lambda decorated: torch.compile(decorated, **options)
        if not isinstance(model, FunctionType):
            return self._compile(model, **options)
        compiled: list[Callable[..., Any]] = []

        @wraps(model)
        def compiled_when_called(*given: Any, **named: Any) -> Any:
            if not compiled:
                if torch.compiler.is_compiling():  # another function, of which it becomes a part
                    return model(*given, **named)
                compiled.append(self._compile(model, **options))
            return compiled[0](*given, **named)

        return compiled_when_called

    def assume_constant_result(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Notes it for the real one."""
        self._marked.append(("assume_constant_result", function))
        return function

    def allow_in_graph(self, function: Any) -> Any:
        """Notes it for the real one."""
        self._marked.append(("allow_in_graph", function))
        return function

    def _left_alone_once_awake(self, function: Any, disable: Callable[[ModuleType], Any]) -> Callable[..., Any]:
        """The function itself, and what the real `disable` makes of it from when the compiler is awake."""
        real: list[Callable[..., Any]] = []

        @wraps(function)
        def either(*given: Any, **named: Any) -> Any:
            return (real[0] if real else function)(*given, **named)

        self._late[either] = lambda compiler: real.append(disable(compiler))
        return either

    def tell(self, compiler: ModuleType) -> None:
        """Marks what was noted, and makes the files that were imported before it its attributes."""
        for mark, function in self._marked:
            getattr(compiler, mark)(function)
        for settle in list(self._late.values()):
            settle(compiler)
        for part in _STANDING_ALONE:
            module = sys.modules.get(f"{_NAME}.{part}")
            if module is not None:
                setattr(compiler, part, module)

    def wake(self) -> None:
        """Makes room for the real module; who asked for `disable` asks it the next time."""
        del sys.modules[_NAME]
        del torch._dynamo
        if torch.compile is self.compile:
            torch.compile = self._compile
        sys.meta_path.remove(self.finder)
        for function in self._left_alone:
            vars(function).pop(_NOTE, None)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # `inspect` asks every module for its file; that wants nothing of the compiler
        return getattr(_awake(), name)


class _Finder(MetaPathFinder):
    """Asked for each import of a part of `torch._dynamo` while that sleeps."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Lets a file that stands alone be found where it lies; any other wakes all of the compiler."""
        del path, target
        package, _, part = name.rpartition(".")
        if package != _NAME or part in _STANDING_ALONE:
            return None
        _awake()
        there = sys.modules.get(name)
        if there is None:
            return None
        # Of a module that has come into `sys.modules` meanwhile, Python takes its own spec, whatever a finder says.
        loader = _AlreadyThere(there)
        there.__spec__ = ModuleSpec(name, loader)
        return there.__spec__


class _AlreadyThere(Loader):
    """Gives a module that was imported while it was looked for, and is not to be executed once more."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._own = (module.__spec__, module.__loader__)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """See the class."""
        del spec
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """It has been executed; only what the import wrote into it is taken back."""
        module.__spec__, module.__loader__ = self._own


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
    if not isinstance(standing, _Asleep):
        return importlib.import_module(_NAME)
    standing.wake()
    compiler = importlib.import_module(_NAME)
    standing.tell(compiler)
    return compiler
