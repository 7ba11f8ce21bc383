"""PATH with and without the folder of the command; what else is there stays as it was."""

from __future__ import annotations

import pytest

from installer.windows.command_path import with_folder, without_folder

OURS = r"C:\Users\Jürgen\Programs\Rankdeck\bin"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", OURS),
        (r"C:\a;%USERPROFILE%\b", rf"C:\a;%USERPROFILE%\b;{OURS}"),
        ("C:\\a;", rf"C:\a;{OURS}"),
        ("x" * 9000, f"{'x' * 9000};{OURS}"),
    ],
)
def test_the_folder_is_added_once_at_the_end(path: str, expected: str) -> None:
    assert with_folder(path, OURS) == expected
    assert with_folder(expected, OURS) == expected
    assert with_folder(expected, OURS.upper() + "\\") == expected


@pytest.mark.parametrize("path", ["", r"C:\a;;%USERPROFILE%\b;", rf"{OURS}-other;C:\a"])
def test_only_that_folder_is_taken_away(path: str) -> None:
    assert without_folder(path, OURS) == path
    assert without_folder(with_folder(path.rstrip(";"), OURS.lower()), OURS) == path.rstrip(";")
