"""Diagnostics: what is in the ZIP, what is not, how large it gets, and where it can be written."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from pathlib import Path

import pytest

from core.cli.entry import main
from core.config import RunConfig
from core.doctor import diagnostics
from core.doctor.diagnostics import TAIL_BYTES, gather, write_zip
from core.doctor.machine import WRITING, check_disk, check_writing
from core.errors import PreflightError, UsageError
from core.machine.platform import this_platform
from core.run_folder.store import RunStore

pytestmark = pytest.mark.windows


def make_run(runs_dir: Path, home: str) -> RunStore:
    config = RunConfig(dataset_file=f"{home}/texts", env={"HF_TOKEN": "hf_abcdefghijklmnopqrstuvwx"})
    store = RunStore.create(runs_dir, config, name="Jörg's run")
    lines = [
        {"event": "launch", "ts": 1.0, "devices": ["GPU-12345678-1234-1234-1234-123456789012"], "notes": [home]},
        {"event": "sample", "ts": 2.0, "text": "once upon a time"},
        *({"event": "step", "ts": 3.0, "step": number} for number in range(20_000)),
        {"event": "failed", "ts": 4.0, "error": {"cause": f"{home}/x could not be read with --password hunter22."}},
    ]
    store.metrics.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    log = f"early line\nTraceback: {home}/train.py\n" + f"{home}/x padding\n" * 20_000
    (store.logs / "rank0.log").write_text(log, encoding="utf-8")
    return store


def test_what_is_in_it_holds_no_secret_and_stays_small(runs_dir: Path, tmp_path: Path) -> None:
    home = "/home/Jörg Müller"
    for _ in range(diagnostics.RUNS + 2):
        make_run(runs_dir, home)
    files = gather([WRITING.fail(f"{home}/x", "Choose.")], runs_dir, this_platform(), {"data": f"{home}/y"})
    names = list(files)
    assert names[:4] == ["about.txt", "doctor.json", "versions.json", "settings.json"]
    assert {int(name.split("/")[1].split("-")[0]) for name in names[4:]} == set(range(1, diagnostics.RUNS + 1))
    path = tmp_path / "out" / "diagnostics.zip"
    path.parent.mkdir()
    write_zip(files, path)
    assert path.stat().st_size < 1 << 20 and list(path.parent.iterdir()) == [path]
    with zipfile.ZipFile(path) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    assert list(texts) == names
    whole = "\n".join([*texts, *texts.values()])
    for word in ("hf_abcdef", "hunter22", "once upon a time"):
        assert word not in whole, word
    events = next(text for name, text in texts.items() if name.endswith("/events.jsonl"))
    assert [json.loads(line)["event"] for line in events.splitlines()] == ["launch", "failed"]
    log = next(text for name, text in texts.items() if name.endswith("rank0.log"))
    assert len(log.encode()) < TAIL_BYTES + 200 and f"{home}/x padding" in log and "early line" not in log
    assert json.loads(texts["doctor.json"])[0]["text"] == f"{home}/x"
    assert next(text for name, text in texts.items() if name.endswith("run.toml")).count("<secret>") == 1


def test_a_run_that_cannot_be_read_is_no_obstacle(runs_dir: Path) -> None:
    store = make_run(runs_dir, "/home/x")
    store.state_json.write_text("{", encoding="utf-8")
    store.metrics.write_bytes(b"\xff\xfe not json\n")
    files = gather([], runs_dir, this_platform(), {})
    assert next(text for name, text in files.items() if name.endswith("state.json")) == "{"
    assert next(text for name, text in files.items() if name.endswith("events.jsonl")) == ""


def test_a_zip_is_whole_or_not_there(tmp_path: Path) -> None:
    files = {"about.txt": "x"}
    with pytest.raises(UsageError, match="is a folder"):
        write_zip(files, tmp_path)
    with pytest.raises(PreflightError):
        write_zip(files, tmp_path / "missing" / "x.zip")
    assert list(tmp_path.iterdir()) == []
    there = tmp_path / "x.zip"
    there.write_text("old", encoding="utf-8")
    with pytest.raises(UnicodeEncodeError):
        write_zip({"a.txt": "x", "b.txt": "\ud800"}, there)
    assert there.read_text(encoding="utf-8") == "old" and list(tmp_path.iterdir()) == [there]


@pytest.mark.skipif(sys.platform != "linux", reason="a full device is Linux's")
def test_a_full_or_read_only_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(PreflightError):
        write_zip({"about.txt": "x"}, Path("/proc/x.zip"))
    for check in (check_disk, check_writing):
        finding = check(Path("/proc/self"))
        assert finding.level == "fail" and finding.next_step and finding.fix == "choose_runs_folder", finding
    if os.getuid():
        (tmp_path / "ro").mkdir(mode=0o555)
        assert check_writing(tmp_path / "ro").level == "fail"


@pytest.mark.usefixtures("runs_dir")
def test_the_command_line_asks_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "d.zip"
    assert main(["doctor", "--zip", str(path)]) == 2
    shown = capsys.readouterr()
    assert "doctor.json" in shown.out and "--yes" in shown.err and not path.exists()
    assert main(["doctor", "--json", "--zip", str(path), "--yes"]) in (0, 3)
    shown = capsys.readouterr()
    with zipfile.ZipFile(path) as archive:
        kept = json.loads(archive.read("doctor.json"))
    assert [item["id"] for item in kept] == [item["id"] for item in json.loads(shown.out)]
