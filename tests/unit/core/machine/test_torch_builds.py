"""Which torch build suits a machine, and where it is looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.launch.mode import CUDA_TORCH
from core.machine.cuda_torch import GOOD_TORCH
from core.machine.torch_builds import (
    CUDA_13_DRIVER,
    PYTORCH_INDEX,
    NvidiaDriver,
    cuda_tag,
    parse_driver,
    pinned_torch_version,
    torch_sources,
)

pytestmark = pytest.mark.windows
ROOT = Path(__file__).resolve().parents[4]
ADA = NvidiaDriver(580, (8, 9))


def asked(system: str, driver: NvidiaDriver | None, index: str | None = None) -> list[tuple[str, str | None]]:
    """Requirement and the last part of the index, for each place that is tried."""
    sources = torch_sources(system, "2.13.0", driver, index)
    return [(source.requirement, source.index and source.index.rsplit("/", 1)[-1]) for source in sources]


@pytest.mark.parametrize(
    ("system", "driver", "expected"),
    [
        ("win32", None, [("torch==2.13.0", None)]),
        ("win32", ADA, [("torch==2.13.0+cu130", None), ("torch==2.13.0+cu130", "cu130")]),
        ("win32", NvidiaDriver(560, (8, 9)), [("torch==2.13.0+cu126", None), ("torch==2.13.0+cu126", "cu126")]),
        ("linux", None, [("torch==2.13.0+cpu", None), ("torch==2.13.0+cpu", "cpu"), ("torch==2.13.0", None)]),
        ("linux", ADA, [("torch==2.13.0+cu130", None), ("torch==2.13.0+cu130", "cu130"), ("torch==2.13.0", None)]),
        ("darwin", None, [("torch==2.13.0", None)]),
    ],
)
def test_torch_is_the_build_for_this_machine(
    system: str, driver: NvidiaDriver | None, expected: list[tuple[str, str | None]]
) -> None:
    assert asked(system, driver) == expected


def test_a_named_index_is_the_only_one_asked() -> None:
    assert asked("win32", ADA, "file:///mirror/here") == [("torch==2.13.0", "here")]


@pytest.mark.parametrize(
    ("answer", "driver", "tag"),
    [
        ("580.65.06, 8.9\n580.65.06, 12.0\n", NvidiaDriver(580, (8, 9)), "cu130"),
        ("581.15, 6.1\n581.15, 8.9\n", NvidiaDriver(581, (6, 1)), "cu126"),
        ("551.86, 8.6\r\n", NvidiaDriver(551, (8, 6)), "cu126"),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", NvidiaDriver(), "cu130"),
        ("580.65.06, [N/A]\n", NvidiaDriver(580, None), "cu130"),
        ("", NvidiaDriver(), "cu130"),
    ],
)
def test_what_nvidia_smi_says(answer: str, driver: NvidiaDriver, tag: str) -> None:
    assert parse_driver(answer) == driver
    assert cuda_tag(driver) == tag


def test_the_pinned_torch_is_one_that_has_gloo_on_windows() -> None:
    version = pinned_torch_version((ROOT / "constraints.txt").read_text(encoding="utf-8"))
    assert version.split(".")[:2] not in (["2", "8"], ["2", "9"], ["2", "10"])
    with pytest.raises(ValueError, match="no torch== line"):
        pinned_torch_version("numpy==2.4.6\n")


def test_every_requirement_is_pinned_once() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.split("==", 1) for line in lines if line and not line.startswith("#")]
    names = [name.lower().replace("_", "-") for name, _version in pins]
    platforms = [version.partition(";")[2] for _name, version in pins]
    assert len(pins) == len(set(zip(names, platforms, strict=True))), "once, or once a platform"
    twice = {name for name in names if names.count(name) > 1}
    assert all(place for name, place in zip(names, platforms, strict=True) if name in twice)
    assert all("==" in line and "://" not in line and "+" not in line for line in lines if line[:1].isalpha())
    assert {"torch", "pyside6-essentials", "numpy", "pytest", "ruff", "mypy", "hatchling"} <= set(names)


def test_messages_name_the_torch_and_the_index_that_the_installer_takes() -> None:
    # core may not import the installer, so both write the version and the index down.
    assert pinned_torch_version((ROOT / "constraints.txt").read_text(encoding="utf-8")) == GOOD_TORCH
    assert f"torch=={GOOD_TORCH} --index-url {PYTORCH_INDEX}/{cuda_tag(NvidiaDriver())} " in CUDA_TORCH
    older = cuda_tag(NvidiaDriver(CUDA_13_DRIVER - 1))
    assert f"({older} where the driver is older than {CUDA_13_DRIVER})" in CUDA_TORCH
