"""References to data on another machine."""

from __future__ import annotations

import pytest

from core.config.run_config import RunConfig
from core.errors import ConfigError, UsageError
from core.machines.machine import check_not_there
from core.machines.send import check_sendable


def test_a_path_there_is_for_another_machine_only() -> None:
    config = RunConfig(dataset_file="there:///data/corpus.txt")
    check_sendable(config)
    with pytest.raises(UsageError, match="a path on another machine"):
        check_not_there(config)
    check_not_there(RunConfig())


@pytest.mark.parametrize("text", ["there://", "there://  "])
def test_no_path(text: str) -> None:
    with pytest.raises(ConfigError, match="names no path") as refused:
        check_sendable(RunConfig(dataset_file=text))
    assert refused.value.field == "dataset_file"


def test_a_copy_of_the_metrics_cannot_be_written_there() -> None:
    with pytest.raises(ConfigError) as refused:
        check_sendable(RunConfig(log_file="/tmp/copy.jsonl"))
    assert refused.value.field == "log_file"
