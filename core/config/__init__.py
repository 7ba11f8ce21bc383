"""A run's settings: `RunConfig`, the limits of its fields, its file formats and its flags."""

from core.config.run_config import RunConfig

__all__ = ["RunConfig"]
