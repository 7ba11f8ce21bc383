"""Installs, kills, upgrades and uninstalls Rankdeck on this Windows, as a person would, and prints each result.

    python installer/windows/smoke.py --old Rankdeck-Setup-0.1.0.exe --new Rankdeck-Setup-0.1.1.exe
        [--wheels DIR]

With wheels it also makes a training environment from them, and trains, stops and resumes a run on two CPU devices. Runs
with any Python 3.11 for Windows; nothing is mocked. Ends with code 1 if a step failed. It replaces an installed
Rankdeck of the same person, and their training environments, so use an account for tests.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar

SETUP_LIMIT_S: Final = 600.0
COMMAND_LIMIT_S: Final = 120.0
TRAINING_LIMIT_S: Final = 900.0
ENVIRONMENT_LIMIT_S: Final = 3600.0
STEPS: Final = 5000
POLL_S: Final = 0.02
KEY: Final = r"Software\Microsoft\Windows\CurrentVersion\Uninstall\Rankdeck"
WM_CLOSE: Final = 0x10
RENAMED: Final = "the new version is renamed"
T = TypeVar("T")


class StepError(Exception): ...


class Program:
    """The installed Rankdeck."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.window = folder / "Rankdeck.exe"
        self.command = folder / "bin" / "rankdeck.exe"
        self.versions = folder / "versions"

    def version(self) -> str:
        """The version that `rankdeck --version` prints; empty if it does not start."""
        try:
            answer = subprocess.run(
                [str(self.command), "--version"], capture_output=True, text=True, timeout=COMMAND_LIMIT_S, check=False
            )
        except OSError:
            return ""
        found = re.search(r"\d+\.\d+\.\d+", answer.stdout)
        return found[0] if found else ""

    def run(self, *arguments: str, limit_s: float = COMMAND_LIMIT_S) -> str:
        """Run a command of Rankdeck to its end and return its output; fails if the command does."""
        answer = subprocess.run(
            [str(self.command), *arguments], capture_output=True, encoding="utf-8", timeout=limit_s, check=False
        )
        output = answer.stdout.strip()
        code = answer.returncode
        expect(code == 0, f"{' '.join(arguments)} ended with code {code}: {answer.stderr.strip()} {output}")
        return output

    def folders(self) -> list[str]:
        return sorted(path.name for path in self.versions.iterdir()) if self.versions.is_dir() else []

    def setup(self, setup: Path) -> subprocess.Popen[bytes]:
        """Start a silent setup. `/D=` is last and without quotes: NSIS takes the rest of the line."""
        return subprocess.Popen(f'"{setup}" /S /D={self.folder}')

    def install(self, setup: Path) -> int:
        return self.setup(setup).wait(SETUP_LIMIT_S)

    def uninstall(self) -> int:
        """Run a silent uninstallation in place, which can be waited for."""
        return subprocess.Popen(f'"{self.folder / "uninstall.exe"}" /S _?={self.folder}').wait(SETUP_LIMIT_S)

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Open the window and close it."""
        if sys.platform != "win32":
            raise OSError("This runs on Windows only.")
        process = subprocess.Popen([str(self.window)])
        try:
            window = wait_for(lambda: ctypes.windll.user32.FindWindowW(None, "Rankdeck"), COMMAND_LIMIT_S, "the window")
            yield
            ctypes.windll.user32.PostMessageW(window, WM_CLOSE, 0, 0)
            process.wait(COMMAND_LIMIT_S)
        finally:
            if process.poll() is None:
                end_tree(process.pid)


def phases(program: Program, name: str) -> dict[str, Callable[[], bool]]:
    """The phases of a setup that can be seen from outside, in order; `name` is the new version's."""

    def partial(file: str) -> bool:
        return any((folder / file).exists() for folder in program.versions.glob(f"{name}-*.partial"))

    def renamed() -> bool:
        return any(not path.name.endswith(".partial") for path in program.versions.glob(f"{name}-*"))

    return {
        "half of the files are written": lambda: partial("python/Lib/os.py"),
        "all files are written": lambda: partial("rankdeck.ico"),
        RENAMED: renamed,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Go through all steps; return 1 if one failed."""
    parser = argparse.ArgumentParser(description="Smoke test of Rankdeck's installer.")
    parser.add_argument("--old", type=Path, required=True, help="The setup of a version.")
    parser.add_argument("--new", type=Path, required=True, help="The setup of the next one.")
    default = Path(os.environ["LOCALAPPDATA"]) / "Programs" / "Rankdeck test ü 試"
    parser.add_argument("--folder", type=Path, default=default, help="Where to install.")
    parser.add_argument("--wheels", type=Path, help="Make a training environment from the wheels in this folder.")
    options = parser.parse_args(arguments)
    failed = 0
    for title, step in steps(options):
        began = time.monotonic()
        try:
            note = step()
        except (StepError, OSError, subprocess.TimeoutExpired) as error:
            failed += 1
            print(f"FAILED {title}: {error}", flush=True)
        else:
            print(f"ok     {title}{f': {note}' if note else ''} ({time.monotonic() - began:.1f} s)", flush=True)
    print(f"{failed} steps failed" if failed else "All steps passed", flush=True)
    return 1 if failed else 0


def steps(options: argparse.Namespace) -> Iterator[tuple[str, Callable[[], str]]]:
    program = Program(options.folder)
    run = Path(os.environ["LOCALAPPDATA"]) / "Rankdeck test runs" / time.strftime("%Y-%m-%d %H.%M.%S")
    old, new = version_of(options.old), version_of(options.new)
    yield f"install {old} into {program.folder}", lambda: installed(program, options.old, old)
    if options.wheels is not None:
        yield f"make a training environment from {options.wheels}", lambda: environment_made(program, options.wheels)
        yield "train on two devices, and stop", lambda: trained(program, run)
        yield "resume to the end", lambda: resumed(program, run)
    yield "open its window", lambda: window_opened(program)
    yield "refuse an upgrade while the window is open", lambda: refused_while_open(program, options.new, old)
    for phase in phases(program, new):
        yield (
            f"kill the upgrade when {phase}",
            lambda phase=phase: killed(program, options.new, new, phase, old),  # type: ignore[misc]
        )
    yield f"upgrade to {new}", lambda: installed(program, options.new, new)
    yield f"{old} is kept beside it", lambda: kept(program, old, new)
    yield f"go back to {old} by its setup", lambda: installed(program, options.old, old)
    yield f"upgrade to {new} again", lambda: installed(program, options.new, new)
    yield f"go back to {old} by its back.py", lambda: led_back(program, old)
    yield "leave a file of the person's alone when uninstalled", lambda: uninstalled(program)
    if options.wheels is not None:
        yield "leave the run, and no training environment", lambda: run_left(run)


def installed(program: Program, setup: Path, version: str) -> str:
    """Install silently, and ask the program for its version."""
    code = program.install(setup)
    expect(code == 0, f"the setup ended with code {code}: {setup_log()}")
    found = program.version()
    expect(found == version, f"rankdeck --version says {found!r}, not {version}")
    expect(entry("DisplayVersion") == version, f"Windows lists version {entry('DisplayVersion')!r}")
    return f"{sum(1 for _ in program.folder.rglob('*'))} files"


def environment_made(program: Program, wheels: Path) -> str:
    """Make a training environment without a network, and train with it from then on."""
    program.run("environment", "make", "--build", "cpu", "--wheels", str(wheels), limit_s=ENVIRONMENT_LIMIT_S)
    made = json.loads(program.run("environment", "--json"))
    expect(len(made) == 1 and made[0]["chosen"], f"there are {made}")
    return f"PyTorch {made[0]['torch']}"


def trained(program: Program, run: Path) -> str:
    """Start a run on two devices and ask it to stop; it saves a checkpoint first."""
    run.parent.mkdir(parents=True, exist_ok=True)
    text = run.parent / "tëxt.txt"
    text.write_text("The quick brown fox jumps over the lazy dog. " * 20_000, encoding="utf-8")
    asked = (
        *("--recipe", "minigpt", "--dataset-file", str(text), "--devices", "cpux2", "--mode", "ddp"),
        *("--steps", str(STEPS), "--seq-len", "16", "--run-dir", str(run)),
        *("--set", "n_layer=1", "--set", "n_head=2", "--set", "n_embd=16"),
    )
    program.run("train", *asked, "--detach", limit_s=TRAINING_LIMIT_S)
    metrics = run / "metrics.jsonl"
    wait_for(lambda: '"step"' in read(metrics), TRAINING_LIMIT_S, "the first step")
    program.run("stop", str(run), limit_s=TRAINING_LIMIT_S)
    wait_for(lambda: state(program, run) == "stopped", TRAINING_LIMIT_S, "the run to stop")
    return f"after step {steps_of(metrics)[-1]}"


def resumed(program: Program, run: Path) -> str:
    """Resume the run in the foreground: every step is there once, on both devices."""
    program.run("resume", str(run), "--yes", limit_s=TRAINING_LIMIT_S)
    expect(state(program, run) == "finished", f"the run is {state(program, run)}")
    steps = steps_of(run / "metrics.jsonl")
    expect(steps == list(range(1, STEPS + 1)), f"steps {steps[:3]} to {steps[-3:]}, {len(steps)} in all")
    return f"{STEPS} steps, each once"


def run_left(run: Path) -> str:
    """Check that the uninstallation left the run, and no environment: setup and window made those."""
    expect((run / "metrics.jsonl").is_file(), f"{run} is gone")
    environments = Path(os.environ["LOCALAPPDATA"]) / "Rankdeck" / "environments"
    expect(not environments.exists(), f"{environments} is left")
    return ""


def window_opened(program: Program) -> str:
    with program.opened():
        return ""


def refused_while_open(program: Program, setup: Path, version: str) -> str:
    """Check that a setup that starts while the window is open changes nothing."""
    with program.opened():
        code = program.install(setup)
        expect(code == 3, f"the setup ended with code {code}, not 3")
    expect(program.version() == version, f"rankdeck --version says {program.version()!r}")
    return setup_log()


def led_back(program: Program, version: str) -> str:
    """Run a launcher's way back, by the Python of the version before."""
    folder = next(path for path in program.versions.iterdir() if path.name.startswith(f"{version}-"))
    done = subprocess.run(
        [str(folder / "python" / "python.exe"), "-I", str(folder / "back.py")],
        capture_output=True, encoding="utf-8", timeout=COMMAND_LIMIT_S, check=False,
    )  # fmt: skip
    expect(done.returncode == 0, f"back.py ended with code {done.returncode}: {done.stdout}{done.stderr}")
    expect(program.version() == version, f"rankdeck --version says {program.version()!r}, not {version}")
    expect(entry("DisplayVersion") == version, f"Windows lists version {entry('DisplayVersion')!r}")
    return ""


def killed(program: Program, setup: Path, name: str, phase: str, version: str) -> str:
    """Kill a setup in a phase; the version before starts."""
    reached = phases(program, name)[phase]
    for path in program.versions.glob(f"{name}-*"):
        wait_for(lambda path=path: removed(path), COMMAND_LIMIT_S, f"programs in {path.name}")  # type: ignore[misc]
    process = program.setup(setup)
    wait_for(lambda: reached() or process.poll() is not None, SETUP_LIMIT_S, phase)
    expect(process.poll() is None, "the setup had ended before it could be killed")
    end_tree(process.pid)
    found = program.version()
    # Once the new version is renamed, the launchers may name it before the setup can be killed.
    working = (version, name) if phase == RENAMED else (version,)
    expect(found in working, f"rankdeck --version says {found!r}, not {version}; there are {program.folders()}")
    return f"{found} starts; left {program.folders()}"


def kept(program: Program, old: str, new: str) -> str:
    """Check that the version before is there for the way back, and no rest of a killed setup."""
    names = [name.rsplit("-", 1)[0] for name in program.folders()]
    expect(names == [old, new], f"there are {program.folders()}")
    return ""


def uninstalled(program: Program) -> str:
    """Uninstall silently: the folder holds only files that were never installed."""
    own = program.folder / "my notes.txt"
    own.write_text("mine", encoding="utf-8")
    code = program.uninstall()
    expect(code == 0, f"the uninstallation ended with code {code}: {setup_log()}")
    # In place it cannot remove itself; started normally, a copy of it does.
    left = sorted(path.name for path in program.folder.iterdir() if path.name != "uninstall.exe")
    expect(left == [own.name], f"left: {left}")
    expect(entry("DisplayVersion") == "", "Windows still lists it")
    shortcut = Path(os.environ["APPDATA"]) / "Microsoft/Windows/Start Menu/Programs/Rankdeck.lnk"
    expect(not shortcut.exists(), "the Start menu still has it")
    return ""


def state(program: Program, run: Path) -> str:
    return str(json.loads(program.run("show", str(run), "--json", limit_s=TRAINING_LIMIT_S))["state"])


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def steps_of(metrics: Path) -> list[int]:
    """The steps of rank 0, in the order in which they were written."""
    lines = (json.loads(line) for line in read(metrics).splitlines())
    return [line["step"] for line in lines if line["event"] == "step" and line["rank"] == 0]


def expect(true: bool, otherwise: str) -> None:
    if not true:
        raise StepError(otherwise)


def version_of(setup: Path) -> str:
    found = re.search(r"(\d+\.\d+\.\d+)\.exe$", setup.name)
    if found is None:
        raise SystemExit(f"{setup.name} does not end in a version")
    return found[1]


def entry(name: str) -> str:
    """A value of the list of installed programs; empty when there is none."""
    if sys.platform != "win32":
        raise OSError("This runs on Windows only.")
    import winreg

    try:
        with winreg.OpenKey(winreg.HKEY_CURRENT_USER, KEY) as key:
            return str(winreg.QueryValueEx(key, name)[0])
    except OSError:
        return ""


def setup_log() -> str:
    try:
        return (Path(os.environ["LOCALAPPDATA"]) / "Rankdeck" / "setup.log").read_text(encoding="utf-16").strip()
    except OSError:
        return ""


def wait_for(condition: Callable[[], T], limit_s: float, what: str) -> T:
    deadline = time.monotonic() + limit_s
    while not (value := condition()):
        expect(time.monotonic() < deadline, f"waited {limit_s:.0f} s for {what}")
        time.sleep(POLL_S)
    return value


def removed(folder: Path) -> bool:
    """Remove a folder, once no program runs in it: the check that a killed setup had started outlives it."""
    try:
        shutil.rmtree(folder)
    except PermissionError:
        return False
    return True


def end_tree(pid: int) -> None:
    """Kill a process and its children, as Task Manager does."""
    subprocess.run(["taskkill", "/F", "/T", "/PID", str(pid)], capture_output=True, check=False)
    time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main())
