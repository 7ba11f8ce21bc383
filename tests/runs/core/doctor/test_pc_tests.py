"""Tests of a person's PC: each is a finding, whatever the machine does, and one file holds them all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from core.doctor.finding import SELF_TESTS, Finding, Topic
from core.doctor.pc_tests import CounterWatch, PcTest, run_pc_test
from core.doctor.pc_tests import pc_tests as list_pc_tests

pytestmark = pytest.mark.windows
ROOT = Path(__file__).resolve().parents[4]
TOPIC = Topic("made", "Made up", SELF_TESTS, "For a test.")
LIMIT_S = 240.0


def never() -> bool:
    return False


def test_every_test_of_this_machine_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen" if sys.platform != "win32" else "windows")
    found = {test.topic.id: run_pc_test(test, never) for test in list_pc_tests(tmp_path, never)}
    assert set(found) == {"pc_awake", "pc_long_path", "pc_held", "pc_death", "pc_window"}
    assert found["pc_death"].level == "ok", found["pc_death"]
    assert found["pc_long_path"].level == "ok", found["pc_long_path"]
    awake = found.pop("pc_awake")
    assert awake.level in ("ok", "not_tried") or sys.platform == "win32", awake  # Wine lists no wish to stay awake
    assert all(finding.level in ("ok", "not_tried") for finding in found.values()), found
    if sys.platform == "win32":
        assert found["pc_held"].level == found["pc_window"].level == "ok", found
    assert not list(tmp_path.iterdir())


def test_a_test_that_breaks_is_a_result() -> None:
    def breaks() -> Finding:
        raise KeyError("lost")

    finding = run_pc_test(PcTest(TOPIC, breaks), never)
    assert finding.level == "warn" and "KeyError" in finding.text


def test_a_test_that_hangs_is_a_result() -> None:
    over = threading.Event()

    def hangs() -> Finding:
        over.wait(LIMIT_S)
        return TOPIC.ok("never")

    finding = run_pc_test(PcTest(TOPIC, hangs), never, limit_s=0.3)
    over.set()
    assert finding.level == "warn" and "did not finish within 0.3 s" in finding.text


def test_a_cancelled_test_is_not_tried() -> None:
    finding = run_pc_test(PcTest(TOPIC, lambda: TOPIC.ok("done")), lambda: True)
    assert finding.level == "not_tried"


def test_counters_that_are_not_there_are_a_result() -> None:
    finding = CounterWatch().close()
    assert finding.level == "not_tried" and finding.text


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("interrupted", [False, pytest.param(True, marks=pytest.mark.skipif(
    sys.platform == "win32", reason="Ctrl+C needs a console, which a test has not"))])  # fmt: skip
def test_one_file_holds_the_results(tmp_path: Path, interrupted: bool) -> None:
    out = tmp_path / "out.zip"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "RANKDECK_HOME": str(tmp_path), "QT_QPA_PLATFORM": "offscreen"}
    env.update(PYTHONUTF8="1", USERNAME="janedoeston", USER="janedoeston")
    command = [sys.executable, "-m", "core", "selftest", "--out", str(out)]
    with subprocess.Popen(command, env=env, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        text = ""
        for line in process.stdout:
            text += line.decode("utf-8")
            if interrupted and "Temporary folder" in text:
                process.send_signal(signal.SIGINT)
                text += process.stdout.read().decode("utf-8")
        code = process.wait(LIMIT_S)
    assert code == (130 if interrupted else 0), text
    assert "Written: " in text
    with zipfile.ZipFile(out) as archive:
        expected = {"about.txt", "doctor.json", "versions.json", "settings.json", "counters.json", "selftest.json"}
        assert set(archive.namelist()) == expected
        results = {one["id"]: one for one in json.loads(archive.read("doctor.json"))}
        told = json.loads(archive.read("selftest.json"))
        assert b"janedoeston" not in b"".join(map(archive.read, archive.namelist()))
    assert told == {"interrupted": interrupted}
    assert {"pc_counters", "pc_held", "link_gloo"} <= set(results)
    if interrupted:
        assert results["pc_held"]["level"] == results["link_gloo"]["level"] == "not_tried"
    else:
        assert results["pc_death"]["level"] == "ok"


@pytest.mark.slow
def test_a_file_that_cannot_be_written_is_refused_before_the_tests(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "RANKDECK_HOME": str(tmp_path), "PYTHONUTF8": "1"}
    command = [sys.executable, "-m", "core", "selftest", "--out", str(tmp_path / "not" / "there" / "out.zip")]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 3, done.stderr
    assert b"not" in done.stderr and b"OK" not in done.stdout
