"""Small wheels that pip accepts, for tests that install packages."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path

TORCH = "import json\n__version__ = '2.13.0'\n"


def make_wheel(folder: Path, name: str, version: str, content: str, *requires: str, ballast: int = 0) -> Path:
    """A wheel that pip accepts; `ballast` is the size of a file in it."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": content,
        f"{info}/METADATA": "\n".join(
            [
                "Metadata-Version: 2.1",
                f"Name: {name}",
                f"Version: {version}",
                *(f"Requires-Dist: {r}" for r in requires),
            ]
        ),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if ballast:
        files[f"{name}-ballast.txt"] = "x" * ballast
    rows = []
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(text.encode())}")
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,"]) + "\n"
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return wheel
