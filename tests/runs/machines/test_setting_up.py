"""Set up: a Python for Rankdeck is made there by a real venv and pip; what is missing then is named."""

from __future__ import annotations

import importlib.metadata
import zipfile
from pathlib import Path

import pytest

from tests.helpers.ssh_server import SshServer
from tests.runs.machines.conftest import Command

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
NEEDED = ("psutil", "nvidia-ml-py", "orjson", "PyYAML", "tomli-w", "platformdirs")


def pack(folder: Path, name: str) -> None:
    """An installed package as the wheel that it came from."""
    package = importlib.metadata.distribution(name)
    tag = next(line.split(": ")[1] for line in (package.read_text("WHEEL") or "").splitlines() if line[:4] == "Tag:")
    wheel = folder / f"{package.name.replace('-', '_')}-{package.version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in package.files or ():
            if ".." not in file.parts and file.suffix != ".pyc" and file.name not in ("INSTALLER", "REQUESTED"):
                archive.write(str(file.locate()), str(file))


def test_a_python_is_made_there_and_kept(server: SshServer, command: Command, tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    add = [word for word in server.add if word != "--python"]
    del add[add.index("--starter") - 1]  # its value
    command("machines", "add", "box", *add)
    assert "The machine is not set up" in command("machines", "check", "box", code=3)

    setup = ["machines", "setup", "box", "--build", "cpu", "--wheels", str(wheels)]
    for name in NEEDED:
        pack(wheels, name)
    refused = command(*setup, code=1)  # the wheels have no PyTorch
    assert "box: pip found no build of torch" in refused or "torch" in refused
    assert "Copying Python" in refused

    assert "PyTorch" in command("machines", "check", "box", code=3)
    assert "rankdeck machines setup box" in command("train", "--machine", "box", "--detach", code=3)
