"""The run's settings, as a script reads them."""

from __future__ import annotations

from typing import Any, Dict, ItemsView, Iterator, KeysView, Mapping, Optional, ValuesView

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

    def __getitem__(self, name: str) -> Any:
        return dict.__getitem__(self._load(), name)

    def get(self, name: str, default: Any = None) -> Any:
        """As a dict's."""
        return dict.get(self._load(), name, default)

    def __contains__(self, name: object) -> bool:
        return dict.__contains__(self._load(), name)

    def __iter__(self) -> Iterator[str]:
        return dict.__iter__(self._load())

    def __len__(self) -> int:
        return dict.__len__(self._load())

    def keys(self) -> KeysView[str]:  # type: ignore[override]
        """As a dict's."""
        return dict.keys(self._load())

    def values(self) -> ValuesView[Any]:  # type: ignore[override]
        """As a dict's."""
        return dict.values(self._load())

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]
        """As a dict's."""
        return dict.items(self._load())

    def __repr__(self) -> str:
        return dict.__repr__(self._load())

    def as_dict(self) -> Dict[str, Any]:
        """A copy."""
        return dict(self.items())

    def update(self, values: Any = None, allow_val_change: Optional[bool] = None, **more: Any) -> None:  # type: ignore[override]
        """Adds settings: a mapping or an `argparse.Namespace`."""
        if values is not None and not hasattr(values, "keys"):
            values = vars(values) if hasattr(values, "__dict__") else dict(values)
        dict.update(self, values or {}, **more)

    def setdefaults(self, values: Mapping[str, Any]) -> None:
        """Adds settings that are not there yet."""
        for name, value in dict(values).items():
            self._load().setdefault(name, value)


config = Config()
