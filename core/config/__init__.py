"""What a run is asked to do: `RunConfig`, its fields' meaning and limits, and its file formats."""

from core.config.fields import FieldSpec
from core.config.run_config import RunConfig

__all__ = ["FieldSpec", "RunConfig"]
