"""Which torch build suits a machine, and where it is looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.launch.mode import CUDA_TORCH
from core.machine.cuda_torch import GOOD_TORCH
from core.machine.torch_builds import (
    CUDA_13_DRIVER,
    PYTORCH_INDEX,
    Card,
    NvidiaDriver,
    choose_build,
    cuda_tag,
    parse_driver,
    pinned_torch_version,
    torch_sources,
)

ROOT = Path(__file__).resolve().parents[4]
# As `nvidia-smi --query-gpu=driver_version,compute_cap,name --format=csv,noheader` prints it.
ADA = "580.97, 8.9, NVIDIA GeForce RTX 4090\r\n"
TWO = "581.15, 12.0, NVIDIA GeForce RTX 5090\r\n581.15, 8.6, NVIDIA GeForce RTX 3090\r\n"
PASCAL = "581.15, 6.1, NVIDIA GeForce GTX 1080 Ti\n581.15, 8.9, NVIDIA GeForce RTX 4080\n"
TURING_551 = "551.86, 7.5, NVIDIA GeForce RTX 2080 Ti\r\n"
BLACKWELL_572 = "572.83, 12.0, NVIDIA GeForce RTX 5090\r\n"
MIXED_572 = "572.83, 12.0, NVIDIA GeForce RTX 5090\r\n572.83, 8.9, NVIDIA GeForce RTX 4090\r\n"
FAR_APART = "581.15, 12.0, NVIDIA GeForce RTX 5090\r\n581.15, 6.1, NVIDIA GeForce GTX 1080\r\n"
KEPLER = "475.14, 3.5, NVIDIA GeForce GT 710\r\n"
KEPLER_NEW = "535.98, 3.7, Tesla K80\n"
OLD = "472.12, 7.5, NVIDIA GeForce RTX 2060\r\n"
DATACENTRE = "570.86.15, 9.0, NVIDIA H100 80GB HBM3\n570.86.15, 9.0, NVIDIA H100 80GB HBM3\n"
SILENT = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n"
NO_CAPABILITY = "[N/A], [N/A], NVIDIA T1000\n"


def asked(system: str, tag: str, index: str | None = None) -> list[tuple[str, str | None]]:
    """Requirement and the last part of the index, for each place that is tried."""
    sources = torch_sources(system, "2.13.0", tag, index)
    return [(source.requirement, source.index and source.index.rsplit("/", 1)[-1]) for source in sources]


@pytest.mark.parametrize(
    ("system", "tag", "expected"),
    [
        ("win32", "cpu", [("torch==2.13.0", None)]),
        ("win32", "cu130", [("torch==2.13.0+cu130", None), ("torch==2.13.0+cu130", "cu130")]),
        ("win32", "cu126", [("torch==2.13.0+cu126", None), ("torch==2.13.0+cu126", "cu126")]),
        ("linux", "cpu", [("torch==2.13.0+cpu", None), ("torch==2.13.0+cpu", "cpu"), ("torch==2.13.0", None)]),
        ("linux", "cu130", [("torch==2.13.0+cu130", None), ("torch==2.13.0+cu130", "cu130"), ("torch==2.13.0", None)]),
        ("darwin", "cpu", [("torch==2.13.0", None)]),
    ],
)
def test_torch_is_the_build_for_this_machine(system: str, tag: str, expected: list[tuple[str, str | None]]) -> None:
    assert asked(system, tag) == expected


def test_a_named_index_is_the_only_one_asked() -> None:
    assert asked("win32", "cu130", "file:///mirror/here") == [("torch==2.13.0", "here")]


@pytest.mark.parametrize(
    ("answer", "tag", "reason", "advice"),
    [
        (ADA, "cu130", "It suits driver 580 and the GeForce RTX 4090.", ""),
        (TWO, "cu130", "It suits driver 581 and the GeForce RTX 5090 and GeForce RTX 3090.", ""),
        (PASCAL, "cu126", "The GeForce GTX 1080 Ti is older than Turing, which CUDA 13.0 begins with.", ""),
        (TURING_551, "cu126", "CUDA 13.0 needs driver 580 or newer, and this PC has 551.", ""),
        (DATACENTRE, "cu126", "CUDA 13.0 needs driver 580 or newer, and this PC has 570.", ""),
        (BLACKWELL_572, "cu130", "The GeForce RTX 5090 needs CUDA 13.0.", "Update the NVIDIA driver from 572 to 580"),
        (MIXED_572, "cu126", "It suits driver 572 and the other cards.", "the GeForce RTX 5090 needs it"),
        (FAR_APART, "cu130", "The GeForce RTX 5090 needs it.", "The GeForce GTX 1080 cannot be used beside it"),
        (KEPLER, "cpu", "Every CUDA build needs driver 528 or newer, and this PC has 475.", "Update the NVIDIA driver"),
        (KEPLER_NEW, "cpu", "No CUDA build supports the Tesla K80: it is older than Maxwell.", ""),
        (OLD, "cpu", "Every CUDA build needs driver 528 or newer, and this PC has 472.", "then set up PyTorch again"),
        (SILENT, "cu130", "The driver did not say its version. CUDA 13.0 needs driver 580 or newer.", ""),
        (NO_CAPABILITY, "cu130", "The driver did not say its version", ""),
        ("", "cu130", "The driver did not say its version", ""),
    ],
)
def test_the_build_suits_driver_and_cards(answer: str, tag: str, reason: str, advice: str) -> None:
    choice = choose_build(parse_driver(answer), "win32")
    assert choice.tag == tag
    assert reason in choice.reason and advice in choice.advice and bool(advice) == bool(choice.advice)
    assert choice.title in ("PyTorch for the CPU", "PyTorch for CUDA 12.6", "PyTorch for CUDA 13.0")
    assert cuda_tag(parse_driver(answer)) == (tag if tag != "cpu" else "cu126"), "where a CUDA build is wanted anyway"


def test_without_a_driver_it_is_the_cpu() -> None:
    assert choose_build(None).tag == "cpu" and "No NVIDIA driver" in choose_build(None).reason


def test_what_nvidia_smi_says() -> None:
    assert parse_driver(TWO) == NvidiaDriver(
        581, (Card("NVIDIA GeForce RTX 5090", (12, 0)), Card("NVIDIA GeForce RTX 3090", (8, 6)))
    )
    assert parse_driver("580.65.06, [N/A], NVIDIA X\n") == NvidiaDriver(580, ())
    assert parse_driver(SILENT) == parse_driver("") == NvidiaDriver()


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


def test_no_build_of_pypi_stands_in_for_rocm() -> None:
    found = [source.index for source in torch_sources("linux", "2.13.0", "rocm7.2")]
    assert found == [None, f"{PYTORCH_INDEX}/rocm7.2"]
