"""`rankdeck selftest`: each part is a finding, whatever the machine does, and one file holds them all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from core.doctor.finding import answered
from core.doctor.pc_tests import AWAKE, CounterWatch, check_awake

pytestmark = pytest.mark.windows
ROOT = Path(__file__).resolve().parents[4]
LIMIT_S = 240.0


def test_staying_awake_is_answered() -> None:
    finding = answered(AWAKE, check_awake)
    assert finding.level in ("ok", "not_tried") or sys.platform == "win32", finding  # Wine lists no wish to stay awake


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
    env.update(PYTHONUTF8="1", MY_TOKEN="a-token-of-mine")
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
        assert b"a-token-of-mine" not in b"".join(map(archive.read, archive.namelist()))
    assert told == {"interrupted": interrupted}
    assert {"pc_counters", "pc_awake", "link_gloo"} <= set(results)
    assert results["link_gloo"]["level"] == ("not_tried" if interrupted else "ok")


@pytest.mark.slow
def test_a_file_that_cannot_be_written_is_refused_before_the_tests(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "RANKDECK_HOME": str(tmp_path), "PYTHONUTF8": "1"}
    command = [sys.executable, "-m", "core", "selftest", "--out", str(tmp_path / "not" / "there" / "out.zip")]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 3, done.stderr
    assert b"not" in done.stderr and b"OK" not in done.stdout
