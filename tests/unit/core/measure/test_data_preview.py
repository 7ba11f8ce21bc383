"""What goes wrong in the preview's process is here what it was there: its kind, its words, its exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from core.config import RunConfig
from core.data.hub import DownloadNeededError
from core.errors import ConfigError, RankdeckError
from core.launch.resolved import resolve
from core.machine.devices import Device
from core.machine.packages import MissingPackageError
from core.machine.platform import Platform
from core.measure.data_preview import PreviewError, preview_data
from core.processes.ask import Answer
from core.recipes.catalog import get_recipe

pytestmark = pytest.mark.windows


@pytest.mark.parametrize(
    ("kind", "more", "expected", "exit_code"),
    [
        ("MissingPackageError", {"missing": ["pyarrow"]}, MissingPackageError, 3),
        ("DownloadNeededError", {}, DownloadNeededError, 2),
        ("ConfigError", {"field": "text_column"}, ConfigError, 2),
        ("SomethingElse", {}, PreviewError, 1),
    ],
)
def test_an_error_keeps_its_kind_and_words(
    kind: str,
    more: dict[str, Any],
    expected: type[RankdeckError],
    exit_code: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    words = {"cause": "So it is.", "next_step": "Do that.", "title": "Title"}
    answer = Answer({**words, "kind": kind, **more}, "", "exited normally", in_time=True)
    monkeypatch.setattr("core.measure.data_preview.ask_program", Mock(return_value=answer))
    devices = [Device("cpu:0", "cpu", 0, "CPU 0")]
    with pytest.raises(RankdeckError) as caught:
        config = RunConfig(dataset_file=str(tmp_path))
        preview_data(resolve(config, get_recipe("minigpt"), devices, Platform("linux", "2.13.0", None, 4)))
    error = caught.value
    assert type(error) is expected and error.exit_code == exit_code
    assert (error.cause, error.next_step) == ("So it is.", "Do that.")
    if isinstance(error, MissingPackageError):
        assert error.packages == ("pyarrow",), "the window offers to install them"
    else:
        assert error.title == "Title"
    assert getattr(error, "field", "text_column") == "text_column"
