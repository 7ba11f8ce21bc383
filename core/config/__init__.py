"""A run's settings: `RunConfig`, its fields' meaning and limits, its file formats and its flags."""

from core.config.batch import Batch, resolve_batch
from core.config.config_file import read_config, to_toml
from core.config.fields import FieldSpec, FieldValue
from core.config.layers import config_from_mapping
from core.config.run_config import RunConfig

__all__ = [
    "Batch",
    "FieldSpec",
    "FieldValue",
    "RunConfig",
    "config_from_mapping",
    "read_config",
    "resolve_batch",
    "to_toml",
]
