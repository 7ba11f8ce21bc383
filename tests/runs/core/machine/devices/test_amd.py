"""AMD GPUs, answered for by a package `amdsmi` that has recorded values; on the command line and beside NVIDIA's.

Nothing of it has been compared with a card: an answer has the form that AMD's sources give it, which the file names.
"""

from __future__ import annotations

import ctypes.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, TypeVar

import pytest

from core.errors import ConfigError, PreflightError
from tests.helpers.nvml_sim import NEEDS_SIMULATOR, REPOSITORY, pretend_cuda_torch, with_gpus

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="AMD's amdsmi is for Linux")]
RECORDED = REPOSITORY / "tests" / "helpers" / "recorded_amdsmi"
XTX, UNNAMED = "GPU-a1b2c3d4e5f60718", "AMD-0000:0a:00.0"

_T = TypeVar("_T")

WATCH = """
import json, sys
from core.machine.devices.monitor import DeviceMonitor
with DeviceMonitor(with_processes=True, hang_s=0.3, sample_limit_s=5) as monitor:
    devices = [device for device in monitor.devices() if device.kind == "cuda"]
    samples = monitor.sample()
    print(json.dumps({
        "devices": [[d.uuid, d.index, d.name, d.memory_bytes, d.is_amd] for d in devices],
        "samples": [sample.as_dict() for sample in samples],
        "problem": monitor.problem,
    }))
"""


def recorded() -> dict[str, Any]:
    """The answers of a machine with two Radeons."""
    answers: dict[str, Any] = json.loads((RECORDED / "answers" / "radeon.json").read_text(encoding="utf-8"))
    return answers


def environment(folder: Path, answers: dict[str, Any], **more: str) -> dict[str, str]:
    """An environment in which `amdsmi` is installed and answers so; `folder` holds it."""
    if not (folder / "amdsmi").is_dir():
        shutil.copytree(RECORDED / "amdsmi", folder / "amdsmi")
        # Rankdeck looks for the library before it imports the package; any that loads will do.
        loadable = Path(next(iter(Path("/").glob(f"lib/*/{ctypes.util.find_library('c')}"))))
        (folder / "amdsmi" / "libamd_smi.so").symlink_to(loadable)
    file = folder / "answers.json"
    file.write_text(json.dumps(answers), encoding="utf-8")
    return {"PYTHONPATH": str(folder), "RECORDED_AMDSMI": str(file), "ROCM_PATH": "", **more}


def python(arguments: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=REPOSITORY, env={**os.environ, **env}, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip


def watch(folder: Path, answers: dict[str, Any], **more: str) -> dict[str, Any]:
    done = python(["-c", WATCH], environment(folder, answers, **more))
    assert done.returncode == 0, done.stdout + done.stderr
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


def test_radeon_cards_are_listed_and_read(tmp_path: Path) -> None:
    seen = watch(tmp_path, recorded())
    assert seen["devices"] == [
        [XTX, 0, "AMD Radeon RX 7900 XTX", 24560 << 20, True],
        [UNNAMED, 1, "AMD Radeon RX 6700 XT", 12272 << 20, True],  # ROCm gives it no UUID
    ]
    sample = seen["samples"][0]
    del sample["ts"]
    assert sample == {
        "uuid": XTX,
        "utilization_percent": 97.0,
        "memory_used_bytes": 18350 << 20,
        "memory_total_bytes": 24560 << 20,
        "throttle_reasons": [],
    }
    assert seen["problem"] is None


def test_memory_in_use_is_that_of_the_card_which_the_process_sees(tmp_path: Path) -> None:
    program = "from core.machine.devices.gpu_list import OwnGpu\nprint(OwnGpu(is_amd=True).used_bytes())"
    seen = [
        python(["-c", program], environment(tmp_path / name, shown)).stdout
        for name, shown in [("one", recorded()), ("absent", {"init": {"error": 34}})]
    ]
    assert int(seen[0]) > 0 and seen[1] == "None\n"


def test_a_card_that_is_gone_and_one_that_hangs_say_so(tmp_path: Path) -> None:
    answers = recorded()
    answers["gpus"][0]["amdsmi_get_gpu_vram_usage"] = {"error": 31}
    answers["gpus"][1]["amdsmi_get_gpu_activity"] = {"hangs_s": 8}
    first, second = _samples_of_trouble(tmp_path, answers)
    assert first["error"] == "GPU is no longer present"
    assert second["error"].startswith("has not answered for")


def _samples_of_trouble(folder: Path, answers: dict[str, Any]) -> list[dict[str, Any]]:
    file = folder / "answers.json"
    program = WATCH.replace("    samples = monitor.sample()", f"""
    open({str(file)!r}, "w").write({json.dumps(answers)!r})
    monitor.sample()
    import time; time.sleep(0.5)
    samples = monitor.sample()""").replace("sample_limit_s=5", "sample_limit_s=0.2")  # fmt: skip
    done = python(["-c", program], environment(folder, recorded()))
    assert done.returncode == 0, done.stdout + done.stderr
    samples: list[dict[str, Any]] = json.loads(done.stdout)["samples"]
    return samples


@pytest.mark.parametrize("trouble", [{"init": {"error": 34}}, {"gpus": []}])
def test_amdsmi_without_a_driver_or_a_card_changes_nothing(tmp_path: Path, trouble: dict[str, Any]) -> None:
    seen = watch(tmp_path, recorded() | trouble)
    assert seen["devices"] == [] and "AMD" not in (seen["problem"] or "").replace("The AMD driver works and finds", "")


def test_without_its_library_amdsmi_is_not_imported(tmp_path: Path) -> None:
    env = environment(tmp_path, recorded())
    (tmp_path / "amdsmi" / "libamd_smi.so").unlink()
    (tmp_path / "amdsmi" / "__init__.py").write_text("print('Unable to find libamd_smi.so')\n", encoding="utf-8")
    done = python(["-c", WATCH], env)
    assert json.loads(done.stdout)["devices"] == []


def rankdeck(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A command on the Radeons, with a torch that looks like a ROCm build."""
    env = environment(folder / "answers", recorded(), RANKDECK_HOME=str(folder / "home"), **more)
    return python(["-m", "core", *words], env)


@pytest.fixture
def rocm(tmp_path: Path) -> Path:
    """Torch looks like a ROCm build to who reads its version and does not import it."""
    torch = pretend_cuda_torch(tmp_path / "answers")["PYTHONPATH"]
    text = "__version__ = '2.13.0+rocm7.2'\ncuda: Optional[str] = None\nhip: Optional[str] = '7.2.26015-fc0010cf6a'\n"
    Path(torch, "torch", "version.py").write_text(text, encoding="utf-8")
    return tmp_path


def test_devices_and_doctor_list_them(rocm: Path) -> None:
    lines = rankdeck(rocm, "devices", HIP_VISIBLE_DEVICES="0").stdout.splitlines()
    assert lines[1].startswith("cuda:0  AMD Radeon RX 7900 XTX") and lines[1].endswith(XTX)
    assert lines[2].startswith("–       AMD Radeon RX 6700 XT")
    report = rankdeck(rocm, "doctor", "--json").stdout
    found = {finding["id"]: finding for finding in json.loads(report)}
    assert "for ROCm 7.2" in found["torch"]["text"]
    assert "RX 7900 XTX, AMD Radeon RX 6700 XT" in found["gpus"]["text"]
    assert found["cuda_build"]["text"] == "ROCm 7.2 with AMD Radeon RX 7900 XTX, AMD Radeon RX 6700 XT"


def test_a_torch_for_cuda_is_refused_with_the_rocm_build(tmp_path: Path) -> None:
    (tmp_path / "answers").mkdir()
    pretend_cuda_torch(tmp_path / "answers")
    done = rankdeck(tmp_path, "train", "--devices", XTX)
    assert done.returncode == PreflightError.exit_code
    assert "built for CUDA 13.0 and cannot train on AMD Radeon RX 7900 XTX" in done.stderr
    assert "https://download.pytorch.org/whl/rocm7.2" in done.stderr
    assert not (tmp_path / "home" / "runs").exists()


def _simulated(test: _T) -> _T:
    for mark in NEEDS_SIMULATOR:
        test = mark(test)
    return test


@_simulated
def test_beside_nvidias_all_are_listed_and_one_run_on_both_is_refused(tmp_path: Path) -> None:
    (tmp_path / "answers").mkdir()
    pretend_cuda_torch(tmp_path / "answers")
    env = environment(tmp_path / "answers", recorded(), RANKDECK_HOME=str(tmp_path / "home"))

    def both(*words: str) -> subprocess.CompletedProcess[str]:
        return with_gpus("two_workstation", ["-m", "core", *words], env=env)

    listed = json.loads(both("devices", "--json").stdout)["devices"]
    assert [(one["index"], one["is_amd"]) for one in listed] == [(0, False), (1, False), (2, True), (3, True)]
    done = both("train", "--devices", "cuda:1,cuda:2")
    assert done.returncode == ConfigError.exit_code
    assert "GPUs of two makers" in done.stderr and "a run has one PyTorch" in done.stderr
    assert not (tmp_path / "home" / "runs").exists()
