"""The names that users of Weights & Biases know: `from rankdeck import wandb`, or `import rankdeck as wandb`.

What has no meaning here does nothing, so a script that was written for wandb runs unchanged.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Optional, Tuple

from . import metrics, settings
from .link import connected
from .metrics import alert, finish, log
from .settings import Config, config

__all__ = [
    "Artifact", "Audio", "Histogram", "Html", "Image", "Object3D", "Run", "Settings", "Table", "Video", "alert",
    "config", "define_metric", "finish", "init", "log", "login", "run", "save", "unwatch", "watch",
]  # fmt: skip


def _nothing(*_: Any, **__: Any) -> None:
    """Does nothing; for wandb's users."""


watch = unwatch = save = define_metric = _nothing


class Run:
    """What `init` returns; its methods are this module's functions."""

    tags: Tuple[str, ...] = ()
    notes: Optional[str] = None
    entity: Optional[str] = None
    group: Optional[str] = None
    url = ""

    def __init__(self, project: Optional[str] = None) -> None:
        self.summary: Dict[str, Any] = {}
        self.project = project

    @property
    def name(self) -> str:
        return os.environ.get("RANKDECK_RUN_ID", "")

    id = name

    @property
    def dir(self) -> str:
        return os.environ.get("RANKDECK_RUN_DIR", os.getcwd())

    @property
    def step(self) -> int:
        """The step that the next `log` without one gets."""
        return metrics.current_step()

    @property
    def config(self) -> Config:
        return settings.config

    log, finish, alert = staticmethod(log), staticmethod(finish), staticmethod(alert)
    watch = unwatch = save = define_metric = staticmethod(_nothing)
    log_artifact = log_code = use_artifact = mark_preempting = staticmethod(_nothing)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        finish()


run: Optional[Run] = None


def init(project: Optional[str] = None, config: Any = None, name: Optional[str] = None, **_: Any) -> Run:
    """Starts logging. Accepts what wandb's `init` accepts and needs none of it."""
    global run
    if config is not None and not isinstance(config, str):
        settings.config.update(config)
    if run is None:
        run = Run(project)
    connected()
    return run


def login(*_: Any, **__: Any) -> bool:
    """Does nothing and succeeds; for wandb's users."""
    return True


class _Media:
    """Pictures, tables and such are not kept."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def add_data(self, *_: Any, **__: Any) -> None:
        """Does nothing."""


Image = Table = Histogram = Video = Audio = Html = Artifact = Object3D = _Media


def Settings(**settings: Any) -> Dict[str, Any]:
    """A dict; nothing in it is needed."""
    return settings
