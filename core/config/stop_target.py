"""Stop target: the value of a metric that ends a run, as the setting `stop_at` names it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

from core.config.numbers import NumberError, read_number
from core.errors import ConfigError

BETTER: Final = {"<=": "lower", ">=": "higher", "=": ""}
_FORM: Final = re.compile(r"\s*([A-Za-z_][\w./@-]{0,63})\s*(<=|>=|=)\s*(\S+)\s*")


@dataclass(frozen=True, slots=True)
class StopTarget:
    """A metric and the value it is to reach; `better` is "lower" or "higher", or empty: as the recipe says."""

    metric: str
    value: float
    better: str = ""


def read_stop_target(text: str) -> StopTarget:
    """Read a text such as ``val_loss=1.2`` or ``val_accuracy>=0.9``; raises `ConfigError`."""
    found = _FORM.fullmatch(text)
    value = math.nan
    if found is not None:
        try:
            value = float(read_number(found[3]))
        except NumberError as error:
            cause = f"Stop at value (stop_at): {found[3][:80]!r} {error}."
            raise ConfigError("stop_at", cause, error.instead or "Give a number, for example val_loss=1.2.") from None
    if found is None or not math.isfinite(value):
        raise ConfigError(
            "stop_at",
            f"Stop at value (stop_at): {text[:80]!r} is not a metric with a value.",
            "Give a metric of the evaluations and its value, for example val_loss=1.2 or val_accuracy>=0.9.",
        )
    return StopTarget(found[1], value, BETTER[found[2]])
