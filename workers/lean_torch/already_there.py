"""A module that was imported while it was looked for is not to be executed once more."""

from __future__ import annotations

from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType


def already_there(module: ModuleType) -> ModuleSpec:
    """What a finder answers then.

    Args:
        module: What was imported. Its own spec is set aside until the import ends: Python takes that of a module that
            has meanwhile come into `sys.modules`, whatever the finder says.
    """
    module.__spec__ = ModuleSpec(module.__name__, _AlreadyThere(module))
    return module.__spec__


class _AlreadyThere(Loader):
    """Gives that module."""

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
