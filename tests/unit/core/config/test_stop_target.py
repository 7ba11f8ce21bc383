"""The value at which a run is good enough, as text."""

from __future__ import annotations

import pytest

from core.config import RunConfig
from core.config.stop_target import StopTarget, read_stop_target
from core.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("val_loss=1.2", StopTarget("val_loss", 1.2)),
        (" val_accuracy >= 0.9 ", StopTarget("val_accuracy", 0.9, "higher")),
        ("val_loss<=1e-3", StopTarget("val_loss", 1e-3, "lower")),
        ("eval/f1=-2", StopTarget("eval/f1", -2.0)),
    ],
)
def test_targets(text: str, target: StopTarget) -> None:
    assert read_stop_target(text) == target


@pytest.mark.parametrize("text", ["val_loss", "=1.2", "val_loss=low", "val_loss=nan", "val_loss=inf", "1=2", "a b=3"])
def test_what_is_no_target_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        RunConfig(stop_at=text)
    assert caught.value.field == "stop_at" and "val_loss=1.2" in caught.value.next_step


def test_a_target_is_read_as_any_number() -> None:
    assert read_stop_target("val_loss=1,2") == StopTarget("val_loss", 1.2)
    with pytest.raises(ConfigError, match=r"can be read as 1\.2 and as 1200") as caught:
        read_stop_target("val_loss=1,200")
    assert caught.value.next_step == "Write 1200 or 1.2."
