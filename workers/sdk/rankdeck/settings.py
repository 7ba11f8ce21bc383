"""The run's settings, as a script reads them."""

from __future__ import annotations

import functools
from typing import Any, Dict, Mapping

from .link import welcomed


class Config(Dict[str, Any]):
    """The run's settings and what the script adds; read as a dict or by attribute. Asks the host on first use."""

    def _load(self) -> Config:
        if not self.__dict__.get("_loaded"):
            self.__dict__["_loaded"] = True
            for name, value in (welcomed().get("config") or {}).items():
                dict.setdefault(self, name, value)
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def get(self, name: str, default: Any = None) -> Any:
        """As a dict's."""
        return dict.get(self._load(), name, default)

    def as_dict(self) -> Dict[str, Any]:
        """A copy."""
        return dict(self.items())

    def update(self, values: Any = None, **more: Any) -> None:  # type: ignore[override]
        """Adds settings: a mapping or an `argparse.Namespace`."""
        if values is not None and not hasattr(values, "keys"):
            values = vars(values) if hasattr(values, "__dict__") else dict(values)
        dict.update(self, values or {}, **more)

    def setdefaults(self, values: Mapping[str, Any]) -> None:
        """Adds settings that are not there yet."""
        for name, value in dict(values).items():
            self._load().setdefault(name, value)


def _loading(method: Any) -> Any:
    """A method of `dict`, of the loaded settings."""
    return functools.wraps(method)(lambda self, *given: method(self._load(), *given))


for _name in ("__getitem__", "__contains__", "__iter__", "__len__", "__repr__", "keys", "values", "items"):
    setattr(Config, _name, _loading(getattr(dict, _name)))

config = Config()
