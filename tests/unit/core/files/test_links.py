"""A run writes through no link: into a folder that was received, somebody else may have put one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.files.links import LinkError, append_unlinked, refuse_link, refuse_links_below
from tests.helpers.links import link


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "elsewhere.txt"
    path.write_text("kept", encoding="utf-8")
    return path


def test_files_folders_and_what_is_not_there_are_no_links(tmp_path: Path, target: Path) -> None:
    for path in (tmp_path, target, tmp_path / "missing", target / "below a file"):
        refuse_link(path)
        refuse_links_below(path)


def test_a_link_is_refused_with_its_target_even_if_that_is_gone(tmp_path: Path, target: Path) -> None:
    made = link(tmp_path / "link", target)
    for _ in range(2):
        with pytest.raises(LinkError) as caught:
            refuse_link(made)
        assert str(made) in caught.value.cause and str(target) in caught.value.cause
        target.unlink(missing_ok=True)


@pytest.mark.parametrize(("level", "refused"), [(1, True), (2, True), (3, True), (4, False)])
def test_links_are_found_down_to_a_depth(tmp_path: Path, target: Path, level: int, refused: bool) -> None:
    folder = tmp_path / "run"
    inner = folder.joinpath(*"abc"[: level - 1])
    inner.mkdir(parents=True)
    link(inner / "link", target)
    if refused:
        with pytest.raises(LinkError, match="link"):
            refuse_links_below(folder)
    else:
        refuse_links_below(folder)
    with pytest.raises(LinkError):
        refuse_links_below(folder, depth=level)


def test_the_folder_itself_may_be_no_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    with pytest.raises(LinkError):
        refuse_links_below(link(tmp_path / "run", tmp_path / "real"))


def test_a_link_made_between_look_and_open_is_not_followed(
    tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hasattr(os, "O_NOFOLLOW"):
        pytest.skip("Windows looks and opens in two steps")
    made = tmp_path / "log"
    really_open = os.open

    def late(path: Path, flags: int, mode: int = 0o777) -> int:
        link(made, target)
        return really_open(path, flags, mode)

    monkeypatch.setattr(os, "open", late)
    with pytest.raises(LinkError):
        append_unlinked(made)
    assert target.read_text(encoding="utf-8") == "kept"
