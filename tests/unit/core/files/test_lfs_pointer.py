"""Git LFS pointers are refused in a file's place, as data or as what a setting names."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import ConfigError, DatasetError
from core.files.lfs_pointer import check_lfs_pointer

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n"


@pytest.mark.parametrize(("field", "error"), [("", DatasetError), ("model", ConfigError)])
def test_a_pointer_is_refused_read_or_at_hand(field: str, error: type[Exception], tmp_path: Path) -> None:
    path = tmp_path / "weights of a model.safetensors"
    path.write_bytes(POINTER)
    for beginning in (None, POINTER):
        with pytest.raises(error, match="is a Git LFS pointer"):
            check_lfs_pointer(path, beginning, field=field)


def test_any_other_file_passes(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    for content in (b"", b"version 1", b"\x00" + POINTER):
        path.write_bytes(content)
        check_lfs_pointer(path)
        check_lfs_pointer(path, content)
