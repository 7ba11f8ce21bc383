"""Whose file a traceback names: the project's, or its environment's."""

from __future__ import annotations

from pathlib import PurePosixPath, PureWindowsPath

import pytest

from workers.script.own_code import OwnCode

pytestmark = pytest.mark.windows
LINUX = OwnCode([PurePosixPath("/home/me/proj")], "/home/me/proj/.venv/bin/python")
WINDOWS = OwnCode([PureWindowsPath(r"C:\Me\Proj")], r"C:\Me\Proj\.venv\Scripts\python.exe")
PLAIN = OwnCode([PureWindowsPath(r"C:\Me\Proj")], r"C:\Python312\python.exe")


@pytest.mark.parametrize(
    ("code", "file", "inside", "may_be"),
    [
        (LINUX, "/home/me/proj/train.py", True, True),
        (LINUX, "train.py", True, True),
        (LINUX, "/home/me/proj2/train.py", False, True),
        (LINUX, "/home/me/proj/.venv/lib/mine.py", False, False),
        (LINUX, "/home/me/proj/.venv/lib64/mine.py", False, False),
        (LINUX, "/home/me/proj/lib/mine.py", True, True),
        (LINUX, "/usr/lib/python3.11/json/decoder.py", False, False),
        (LINUX, "/opt/site-packages/torch/nn.py", False, False),
        (LINUX, "site-packages/torch/nn.py", False, False),
        (LINUX, "<frozen runpy>", False, False),
        (LINUX, "/home/me/Proj/train.py", False, True),
        (WINDOWS, r"c:\me\proj\train.py", True, True),
        (WINDOWS, r"C:\Me\Proj\.venv\Lib\x.py", False, False),
        (WINDOWS, r"C:\Me\Proj\.venv\Lib\site-packages\torch\nn.py", False, False),
        (WINDOWS, r"D:\other\train.py", False, True),
        (PLAIN, r"C:\Python312\Lib\json\decoder.py", False, False),
        (PLAIN, r"D:\Python\Lib\json\decoder.py", False, False),
        (PLAIN, r"C:\Me\Proj\Lib\mine.py", True, False),
    ],
)
def test_a_files_place_tells_whose_it_is(code: OwnCode, file: str, inside: bool, may_be: bool) -> None:
    assert (code.is_inside(file), code.may_be(file)) == (inside, may_be)


def test_without_a_folder_only_relative_files_are_inside() -> None:
    code = OwnCode([], "/usr/bin/python3")
    assert code.is_inside("train.py") and not code.is_inside("/home/me/train.py")
