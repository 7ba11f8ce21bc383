"""Data references: paths on another machine (``there://PATH``), and settings that only make sense on this computer."""

from __future__ import annotations

from core.config.run_config import RunConfig
from core.errors import ConfigError, UsageError
from core.machines.machine import THERE


def check_sendable(config: RunConfig) -> None:
    """Refuses what only makes sense on this computer; nothing was sent then.

    Raises:
        ConfigError: Names the setting.
    """
    if config.log_file is not None:
        raise ConfigError(
            "log_file",
            "A copy of the metrics cannot be written by another machine.",
            "Leave it out: metrics.jsonl is copied here anyway.",
            option="leave out --log-file",
        )
    text = config.dataset_file.strip()
    if text.startswith(THERE) and not text.removeprefix(THERE).strip():
        raise ConfigError("dataset_file", f"{text!r} names no path.", "For example: there:///data/corpus.txt")


def check_not_there(config: RunConfig) -> None:
    """Refuses data that lies on another machine for a run here.

    Raises:
        UsageError: Says what to do.
    """
    if config.dataset_file.strip().startswith(THERE):
        raise UsageError(
            f"{config.dataset_file} is a path on another machine, and the run would be here.",
            "Name the machine, or data that is here.",
            option="--machine NAME",
        )
