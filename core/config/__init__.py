"""A run's settings: `RunConfig`, its fields' meaning and limits, its file formats and its flags."""

from core.config.run_config import RunConfig

__all__ = ["RunConfig"]
