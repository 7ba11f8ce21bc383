"""What goes wrong in the preview's process is here what it was there: its kind, its words, its exit code."""

from __future__ import annotations

import pytest

from core.data.hub import DownloadNeededError
from core.errors import ConfigError, RankdeckError
from core.machine.packages import MissingPackageError
from core.probes.data_preview import PreviewError, _as_error

pytestmark = pytest.mark.windows


@pytest.mark.parametrize(
    ("kind", "expected", "exit_code"),
    [
        ("MissingPackageError", MissingPackageError, 3),
        ("DownloadNeededError", DownloadNeededError, 2),
        ("ConfigError", ConfigError, 2),
        ("SomethingElse", PreviewError, 1),
    ],
)
def test_an_error_keeps_its_kind_and_words(kind: str, expected: type[RankdeckError], exit_code: int) -> None:
    words = {"cause": "So it is.", "next_step": "Do that.", "title": "Title", "field": "text_column"}
    error = _as_error({**words, "kind": kind, "packages": ["pyarrow"]})
    assert type(error) is expected and error.exit_code == exit_code
    assert (error.cause, error.next_step) == ("So it is.", "Do that.")
    if isinstance(error, MissingPackageError):
        assert error.packages == ("pyarrow",), "the window offers to install them"
    else:
        assert error.title == "Title"
