"""Enters settings that a run changed by itself in its `run.toml`, for a later resume."""

from __future__ import annotations

import logging
from typing import Any

from core.config.config_file import to_toml
from core.errors import RankdeckError
from core.files.atomic import write_atomic
from core.run_folder.store import RunStore

log = logging.getLogger(__name__)


def enter_settings(store: RunStore, **changes: Any) -> None:
    """Enters them; where that fails, as with a full disk, the run continues and its log says so."""
    try:
        write_atomic(store.run_toml, to_toml(store.config().replace(**changes)))
    except (OSError, RankdeckError) as error:
        log.warning("%s could not be entered in run.toml: %s", ", ".join(changes), error)
