"""The table of bad inputs: each gives title, cause and next step, the right exit code, and changes nothing on disk."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from core.cli import main
from core.processes.identity import own
from core.run_folder.store import RunStore
from tests.helpers.made_runs import TEXT, aios_file, make_run, tree
from tests.helpers.small_drive import small_drive

pytestmark = pytest.mark.windows

Words = list[str]


class Case(NamedTuple):
    """One bad input.

    Attributes:
        name: What is bad.
        words: The command, from a folder with `text.txt` in it.
        code: The exit code it must end with.
        said: What title, cause or next step must contain.
    """

    name: str
    words: Callable[[Path], Words]
    code: int
    said: str


def _train(*flags: str) -> Callable[[Path], Words]:
    return lambda _: ["train", "--devices", "cpu:0", "--dataset-file", "text.txt", *flags]


def _on_dataset(make: Callable[[Path], object], *flags: str) -> Callable[[Path], Words]:
    def words(place: Path) -> Words:
        make(place / "data.txt")
        return ["train", "--devices", "cpu:0", "--dataset-file", "data.txt", *flags]

    return words


def _on_table(name: str, *flags: str) -> Callable[[Path], Words]:
    """One of two tables, in a folder below: with a column of text, and with numbers only."""

    def words(place: Path) -> Words:
        last = "some words of text" if name == "rows.csv" else "2.5"
        rows = [f"{day},{last}" for day in range(2000)]
        (place / "tables").mkdir()
        header = "day,text" if name == "rows.csv" else "day,price"
        (place / "tables" / name).write_text("\n".join([header, *rows]), encoding="utf-8", newline="\n")
        return ["train", "--devices", "cpu:0", "--dataset-file", f"tables/{name}", *flags]

    return words


def _on_config(name: str, content: str, *flags: str) -> Callable[[Path], Words]:
    def words(place: Path) -> Words:
        (place / name).write_text(content, encoding="utf-8", newline="\n")
        return ["train", "--config", name, *flags]

    return words


def _on_run(change: Callable[[RunStore], object], *words: str) -> Callable[[Path], Words]:
    """A stopped run of ours, changed; ``RUN`` in the words is its folder."""

    def made(place: Path) -> Words:
        store = make_run(place, runs_dir=place / "runs")
        change(store)
        return [str(store.dir) if word == "RUN" else word for word in words]

    return made


def _rewrite(name: str, change: Callable[[str], str]) -> Callable[[RunStore], object]:
    def rewrite(store: RunStore) -> None:
        path = store.dir / name
        path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")

    return rewrite


def _half(text: str) -> str:
    return text[: len(text) // 2]


def _live(store: RunStore) -> None:
    """The run says that this very process is its host."""
    store.write_state(store.stored_state().replace(state="training", host=own()))


def _live_without_address(store: RunStore) -> None:
    _live(store)
    store.write_host_json(1, "0" * 32, os.getpid())  # nothing listens on port 1


STATE = "chunk_tracker_state.json"
NOTHING: Callable[[RunStore], object] = RunStore.stored_state

CASES = [
    # the dataset
    Case("dataset missing", _train("--dataset-file", "none.txt"), 2, "none.txt"),
    Case("dataset binary", _on_dataset(lambda p: p.write_bytes(b"\0" * 9999)), 2, "NUL"),
    Case("dataset folder without text", _on_dataset(Path.mkdir), 2, "holds no text files"),
    Case("dataset of the hub without a name", _train("--dataset-file", "hf://"), 2, "hf://owner/name"),
    Case(
        "text column that no row has",
        _on_table("rows.csv", "--set", "text_column=body"),
        2,
        "The columns are: day, text",
    ),
    # devices
    Case("device that is not there", _train("--devices", "cuda:7"), 2, "cuda:7"),
    # settings
    Case("unknown recipe", _train("--recipe", "minigtp"), 2, "minigpt"),
    Case("unknown flag", _train("--stpes", "5"), 2, "--steps"),
    Case("value out of range", _train("--steps", "0"), 2, "from 1"),
    Case(
        "DeepSpeed setting that is not for a run of Rankdeck",
        _train("--mode", "zero", "--devices", "cpux2", "--deepspeed-config", '{"scheduler": {"type": "WarmupLR"}}'),
        2,
        "Rankdeck decides the learning rate",
    ),
    Case("modes contradict", _train("--ddp", "--parallel-independent"), 2, "contradict"),
    Case("option that contradicts another", _train("--set", "n_head=5", "--set", "n_embd=64"), 2, "64 ÷ 5"),
    Case("AI-OS flag of another recipe", _train("--halt-max-steps", "1"), 2, "--halt-max-steps"),
    # config files
    Case("config missing", lambda _: ["train", "--config", "none.toml"], 2, "none.toml"),
    Case("config unknown key", _on_config("c.toml", "\nstpes = 1\n"), 2, "line 2"),
    # the run's folder
    Case("run dir is a file", _train("--run-dir", "text.txt"), 2, "is a file"),
    Case("run dir is taken", _on_run(NOTHING, *_train("--run-dir", "RUN")(Path())), 2, "resume"),
    Case("log file is a folder", _train("--log-file", "."), 2, "folder"),
    # resume
    Case("resume nothing", lambda _: ["resume", "nothing"], 2, "nothing"),
    Case("resume a file that is no state", lambda _: ["resume", "text.txt"], 2, "text.txt"),
    Case("state file cut in half", _on_run(_rewrite(STATE, _half), "resume", "RUN"), 2, "checkpoint 2"),
    Case("state.json cut in half", _on_run(_rewrite("state.json", _half), "resume", "RUN"), 2, "state.json"),
    Case("run.toml cut in half", _on_run(_rewrite("run.toml", lambda t: t[:40]), "resume", "RUN"), 2, "run.toml"),
    Case(
        "dataset has changed",
        _on_run(lambda s: (s.dir.parent.parent / "text.txt").write_bytes(TEXT * 2), "resume", "RUN"),
        2,
        "152000 bytes",
    ),
    Case(
        "nothing left",
        _on_run(lambda s: s.write_state(s.state().replace(state="finished")), "resume", "RUN"),
        2,
        "--steps",
    ),
    Case("steps in the past", _on_run(NOTHING, "resume", "RUN", "--steps", "3"), 2, "20 steps"),
    Case("run is live", _on_run(_live, "resume", "RUN"), 2, "attach"),
    Case("AI-OS file without its dataset", lambda p: ["resume", str(aios_file(p / "x_cs50"))], 2, "--dataset-file"),
    # runs that are there
    Case("show nothing", lambda _: ["show", "nothing"], 2, "rankdeck runs"),
    Case("stop a run that is not going", _on_run(NOTHING, "stop", "RUN"), 2, "stopped"),
    Case("host's port wrong", _on_run(_live_without_address, "stop", "RUN"), 1, "host"),
    Case(
        "host.json damaged",
        _on_run(lambda s: (_live(s), s.host_json.write_text("{", encoding="utf-8")), "stop", "RUN"),
        2,
        "host.json",
    ),
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a good dataset and no GPU in sight."""
    (tmp_path / "text.txt").write_bytes(TEXT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANKDECK_HOME", str(tmp_path / "runs"))
    return tmp_path


def _three_lines(error: str) -> list[str]:
    lines = error.splitlines()
    assert len(lines) == 3 and all(line.strip() for line in lines), error
    assert "Traceback" not in error
    return lines


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_bad_input(case: Case, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = case.words(place)
    before = tree(place)
    code = main(words)
    out, error = capsys.readouterr()
    lines = _three_lines(error)
    assert code == case.code, error
    assert case.said in error, error
    assert out == ""
    assert lines[1].endswith((".", ")"))
    assert tree(place) == before


@pytest.mark.parametrize(
    "words",
    [["train", "--devices", "cuda:7", "--dataset-file", "text.txt"], ["resume", "nothing"], ["xyzzy"]],
    ids=["train", "resume", "unknown"],
)
def test_a_process_of_its_own_ends_the_same_way(words: Words, place: Path) -> None:
    before = tree(place)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-m", "core", *words]
    result = subprocess.run(command, capture_output=True, cwd=place, env=environment, timeout=60, check=False)
    assert result.returncode == 2
    _three_lines(result.stderr.decode("utf-8"))
    assert result.stdout == b""
    assert tree(place) == before


@pytest.mark.skipif(sys.platform == "win32", reason="no mode keeps a file's owner from reading it on Windows")
@pytest.mark.skipif(sys.platform != "win32" and os.geteuid() == 0, reason="root may read and write everything")
@pytest.mark.parametrize("what", ["text.txt", "runs"])
def test_no_permission(what: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "runs").mkdir()
    (place / what).chmod(0)
    code = main(["train", "--devices", "cpu:0", "--dataset-file", "text.txt"])
    (place / what).chmod(0o700)
    _three_lines(capsys.readouterr().err)
    assert code == {"text.txt": 2, "runs": 3}[what]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's: a file that even root cannot read")
@pytest.mark.usefixtures("place")
def test_a_dataset_that_cannot_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--devices", "cpu:0", "--dataset-file", "/proc/self/mem"]) == 2
    lines = _three_lines(capsys.readouterr().err)
    assert "/proc/self/mem" in lines[1]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's: even root can make no folder there")
@pytest.mark.usefixtures("place")
def test_a_folder_that_nobody_may_write(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "--devices", "cpu:0", "--dataset-file", "text.txt", "--runs-dir", "/proc/rankdeck"]
    assert main(words) == 3
    _three_lines(capsys.readouterr().err)


@pytest.mark.usefixtures("place")
def test_a_full_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with small_drive(tmp_path / "small drive", 4) as drive:
        words = ["train", "--devices", "cpu:0", "--dataset-file", "text.txt", "--run-dir", str(drive / "run")]
        assert main(words) == 3
        lines = _three_lines(capsys.readouterr().err)
        assert "full" in lines[0]
        assert list(drive.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGXFSZ and knows no such limit")
def test_a_disk_that_is_full_in_the_middle_of_a_write(place: Path) -> None:
    """The limit on a file's size stands for the disk: the run's first files already cannot be written."""
    code = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
        "from core.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "PYTHONDONTWRITEBYTECODE": "1"}
    words = ["train", "--devices", "cpu:0", "--dataset-file", "text.txt", "--detach"]
    command = [sys.executable, "-c", code, *words]
    result = subprocess.run(command, capture_output=True, cwd=place, env=environment, timeout=60, check=False)
    assert result.returncode in (1, 3)
    _three_lines(result.stderr.decode("utf-8"))
    assert result.stdout == b""
