"""Which build of PyTorch is installed, read without importing it."""

from __future__ import annotations

import importlib.util
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from core.machine import platform as platform_module
from core.machine.platform import Platform, this_platform


@pytest.fixture
def version_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    spec = ModuleSpec("torch", None, origin=str(tmp_path / "__init__.py"))
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec if name == "torch" else find(name))
    monkeypatch.setattr(platform_module, "installed_version", lambda *_: "2.13.0")
    return tmp_path / "version.py"


@pytest.mark.parametrize(
    ("text", "version", "cuda", "rocm"),
    [
        ("__all__ = ['cuda']\n__version__ = '2.13.0+cpu'\ncuda: Optional[str] = None\n", "2.13.0+cpu", None, None),
        (
            "__version__ = '2.13.0+cu130'\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n",
            "2.13.0+cu130",
            "13.0",
            None,
        ),
        (
            "__version__ = '2.13.0+rocm7.2'\ncuda: Optional[str] = None\nhip: Optional[str] = '7.2.26015-fc0010cf6a'\n",
            "2.13.0+rocm7.2",
            None,
            "7.2.26015-fc0010cf6a",
        ),
        ('__version__ = "2.7.1"\r\ncuda = "12.8"\r\n', "2.7.1", "12.8", None),
        ("nothing of the kind", "2.13.0", None, None),
    ],
)
def test_the_build_is_read_from_torchs_own_file(
    version_file: Path, text: str, version: str, cuda: str | None, rocm: str | None
) -> None:
    version_file.write_bytes(text.encode())
    platform = this_platform()
    assert (platform.torch_version, platform.cuda_build, platform.rocm_build) == (version, cuda, rocm)


@pytest.mark.parametrize(
    ("platform", "build", "gpu_build"),
    [
        (Platform("linux", "2.13.0+cu130", "13.0", 4), "CUDA 13.0", "13.0"),
        (Platform("linux", "2.13.0+rocm7.2", None, 4, rocm_build="7.2.26015"), "ROCm 7.2", "rocm7.2"),
        (Platform("linux", "2.13.0+cpu", None, 4), "the CPU only", None),
        (Platform("linux", None, None, 4), "the CPU only", ""),
    ],
)
def test_what_a_build_is_for(platform: Platform, build: str, gpu_build: str | None) -> None:
    assert (platform.build, platform.gpu_build) == (build, gpu_build)
    assert platform.has_nccl is (gpu_build not in (None, ""))
    assert platform.is_cpu_only is (gpu_build is None)
