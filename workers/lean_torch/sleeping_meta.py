"""Keeps what PyTorch knows of tensors without data from being imported by a rank that has none.

On the device "meta", and in the compiler, which tries a program out on fake tensors, an operator has to tell the shape
of its result. For about a thousand operators that is written in Python: `import torch` reads those rules, and what they
need, and registers them. It is a third of its time.

Until somebody makes a tensor without data, or asks for any of these modules or their operators, they are not there;
then all are imported, in the order in which `import torch` does it. A torch that keeps them in another way is imported
as ever.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Final

from workers.lean_torch.already_there import already_there

_NAME: Final = "torch._meta_registrations"
_BROUGHT_ALONG: Final = ("_decomp", "_prims", "_refs")
"""Packages that the rules import, and that `import torch` makes attributes of torch's in this way."""
_IN_A_CIRCLE: Final = "torch.utils._content_store"
"""Can be imported after `torch._prims` only."""
_MAKERS: Final = ("empty.memory_format", "empty_strided")
"""Every other operator has its first tensor without data from these."""
_NAMESPACES: Final = ("prims", "rngprims", "debugprims")
"""What `torch._prims` registers under `torch.ops`."""


def import_without_meta() -> None:
    """Imports torch so. It must not be imported yet."""
    package = importlib.util.find_spec("torch")
    spec = None if package is None else PathFinder.find_spec(_NAME, package.submodule_search_locations)
    if spec is None:
        return
    asleep = _Asleep(_NAME)
    asleep.__spec__ = spec
    sys.modules[_NAME] = asleep
    try:
        importlib.import_module("torch")
    except BaseException:
        sys.modules.pop(_NAME, None)
        raise
    asleep.watch()


class _Asleep(ModuleType):
    """Stands for `torch._meta_registrations`."""

    def watch(self) -> None:
        """Wakes as soon as the rules are wanted; at once where that could not be noticed."""
        if sys.modules.get(_NAME) is not self:
            return  # somebody wanted them while torch was imported
        torch = sys.modules["torch"]
        lazy = getattr(torch, "_lazy_modules", None)
        self._finder = _Finder(self)
        if not isinstance(lazy, set) or any(hasattr(torch, name) for name in _BROUGHT_ALONG):
            self.wake()
            return
        torch._meta_registrations = self  # type: ignore[attr-defined]
        lazy.update(_BROUGHT_ALONG)
        sys.meta_path.insert(0, self._finder)
        for name in _NAMESPACES:
            vars(torch.ops).setdefault(name, _Namespace(name, self))
        self._watched = torch.library.Library("aten", "IMPL", "Meta")
        for name in _MAKERS:
            self._watched.impl(name, self._waking(name), allow_override=True)

    def _waking(self, name: str) -> Callable[..., Any]:
        """An operator's stand-in: wakes the rules and calls the operator itself."""
        packet, _, overload = name.partition(".")

        def wake_and_make(*arguments: Any, **options: Any) -> Any:
            import torch

            self.wake()
            return getattr(getattr(torch.ops.aten, packet), overload or "default")(*arguments, **options)

        return wake_and_make

    def wake(self) -> ModuleType:
        """Imports the real module in this one's place."""
        torch = sys.modules["torch"]
        if sys.modules.get(_NAME) is self:
            del sys.modules[_NAME]
            vars(torch).pop("_meta_registrations", None)
            if self._finder in sys.meta_path:
                sys.meta_path.remove(self._finder)
            for name in _NAMESPACES:
                if isinstance(vars(torch.ops).get(name), _Namespace):
                    delattr(torch.ops, name)
        rules = importlib.import_module(_NAME)  # where two threads want them, the second waits here
        vars(self).pop("_watched", None)  # which takes its operators back
        return rules

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # `inspect` asks every module for its file; that wants no rules
        return getattr(self.wake(), name)


class _Finder(MetaPathFinder):
    """Asked for each import while the rules sleep: whoever wants one of their modules gets all, in the usual order."""

    def __init__(self, asleep: _Asleep) -> None:
        self._asleep = asleep
        self._packages = tuple(f"torch.{name}" for name in _BROUGHT_ALONG)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """See the class."""
        del path, target
        if name != _IN_A_CIRCLE and ".".join(name.split(".", 2)[:2]) not in self._packages:
            return None
        self._asleep.wake()
        there = sys.modules.get(name)
        return None if there is None else already_there(there)


class _Namespace:
    """Stands for one of `torch.ops`."""

    def __init__(self, name: str, asleep: _Asleep) -> None:
        self._name = name
        self._asleep = asleep

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._asleep.wake()
        return getattr(getattr(sys.modules["torch"].ops, self._name), name)
