"""bootstrap.py, run as a person runs it, in a small checkout of its own.

The checkout has the real installer, and packages of a few bytes in place of torch and pytest, so that a real
environment is made by the real pip in seconds and without a network.
"""

from __future__ import annotations

import ast
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from core.environments.pip_failures import SUPPORTED

pytestmark = [pytest.mark.windows, pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[3]
LIMIT_S = 300.0

PYPROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "rankdeck"
version = "1"
dependencies = ["torch"]

[project.optional-dependencies]
bpe = []
hf = []
rl = []
deepspeed = []
test = ["pytest"]

[tool.hatch]
"""

# The smallest build backend: an editable install is a wheel with one .pth file.
BACKEND = """
import zipfile
from pathlib import Path

def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    name = "rankdeck-1-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory) / name, "w") as wheel:
        wheel.writestr("_rankdeck.pth", str(Path.cwd()))  # in UTF-8, as hatchling does
        wheel.writestr("rankdeck-1.dist-info/METADATA", "Metadata-Version: 2.1\\nName: rankdeck\\nVersion: 1\\n")
        tag = "Root-Is-Purelib: true\\nTag: py3-none-any\\n"
        wheel.writestr("rankdeck-1.dist-info/WHEEL", f"Wheel-Version: 1.0\\n{tag}")
        wheel.writestr("rankdeck-1.dist-info/RECORD", "")
    return name

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    raise RuntimeError("only editable installs are made here")
"""

SOURCE_BACKEND = """
import zipfile
from pathlib import Path

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    file, info = "{name}-{version}-py3-none-any.whl", "{name}-{version}.dist-info"
    with zipfile.ZipFile(Path(wheel_directory) / file, "w") as wheel:
        wheel.writestr("{name}.py", "")
        wheel.writestr(f"{{info}}/METADATA", "Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
        wheel.writestr(f"{{info}}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{{info}}/RECORD", "")
    return file
"""

# Stands for `rankdeck`, pytest and the suite: says how it was called, and ends with the code that it is told.
ECHO = """
import json, os, sys
keys = ("QT_QPA_PLATFORM",)
print(json.dumps({"argv": sys.argv[1:], "cwd": os.getcwd(), "env": {key: os.environ.get(key) for key in keys}}))
sys.exit(int(sys.argv[-1]) if sys.argv[-1:] and sys.argv[-1].isdigit() else 0)
"""


def make_wheel(folder: Path, name: str, version: str, files: dict[str, str]) -> None:
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def make_source(folder: Path, name: str, version: str) -> None:
    """Writes a source archive of a package with one empty module; it builds without anything else."""
    files = {
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": SOURCE_BACKEND.format(name=name, version=version),
    }
    with tarfile.open(folder / f"{name}-{version}.tar.gz", "w:gz") as archive:
        for path, text in files.items():
            held = tarfile.TarInfo(f"{name}-{version}/{path}")
            held.size = len(text)
            archive.addfile(held, io.BytesIO(text.encode("ascii")))


class Checkout:
    """A small checkout with the real installer in it."""

    def __init__(self, folder: Path, torch: str = "2.13.0+cpu" if sys.platform == "linux" else "2.13.0") -> None:
        self.root = folder / "my chéckout"
        self.wheels = folder / "wheels"
        self.elsewhere = folder / "else where"
        for path in (self.root / "app", self.root / "tests", self.wheels, self.elsewhere):
            path.mkdir(parents=True)
        for name in ("installer", "core"):  # all of core: no installed copy may stand in for what the installer needs
            shutil.copytree(ROOT / name, self.root / name, ignore=shutil.ignore_patterns("__pycache__"))
        make_wheel(self.wheels, "torch", torch, {"torch.py": ""})
        make_wheel(self.wheels, "pytest", "1.0", {"pytest/__init__.py": "", "pytest/__main__.py": ECHO})
        self.write("constraints.txt", "torch==2.13.0\n")
        self.write("pyproject.toml", PYPROJECT)
        self.write("backend.py", BACKEND)
        self.write("app/__init__.py", "")
        self.write("app/__main__.py", ECHO)
        self.write("tests/__init__.py", "")
        self.write("tests/run_suite.py", ECHO)

    def write(self, name: str, text: str) -> None:
        (self.root / name).write_text(text, encoding="utf-8", newline="\n")

    def start(self, *arguments: str, cwd: Path | None = None, **variables: str) -> subprocess.Popen[str]:
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PIP_", "QT_", "RANKDECK", "SSL_")) and not name.endswith("_CA_BUNDLE")
        }
        environment.update(PIP_NO_INDEX="1", PIP_FIND_LINKS=self.wheels.as_uri(), PIP_CONFIG_FILE=os.devnull)
        environment.update(PYTHONIOENCODING="utf-8", PYTHONUTF8="0", **variables)
        return subprocess.Popen(
            [sys.executable, str(self.root / "installer" / "bootstrap.py"), *arguments],
            cwd=cwd or self.elsewhere,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def run(self, *arguments: str, cwd: Path | None = None, **variables: str) -> tuple[int, dict[str, Any], str]:
        with self.start(*arguments, cwd=cwd, **variables) as process:
            out, err = process.communicate(timeout=LIMIT_S)
        return process.returncode, json.loads(out) if out.startswith("{") else {}, err

    @property
    def venv(self) -> Path:
        return self.root / ".venv"

    @property
    def state(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads((self.venv / "rankdeck-venv.json").read_text(encoding="utf-8"))
        return value


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A checkout where `run` was killed while it made the environment."""
    checkout = Checkout(tmp_path_factory.mktemp("ready"))
    with checkout.start("run", "devices") as process:
        deadline = time.monotonic() + LIMIT_S
        while not (checkout.venv / "pyvenv.cfg").exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
        process.communicate(timeout=LIMIT_S)
    assert checkout.state["state"] == "installing"
    return checkout


@pytest.fixture(scope="module")
def ready(killed: Checkout) -> Checkout:
    code, said, err = killed.run("run", "train", "--set", "a b=ü", "7")
    assert said.get("argv") == ["train", "--set", "a b=ü", "7"], err
    assert code == 7
    assert "removing the old .venv" in err and [line for line in err.splitlines() if "creating .venv" in line]
    return killed


def test_a_run_that_was_killed_is_begun_again(ready: Checkout) -> None:
    assert ready.state["state"] == "ready"
    assert [path.name for path in ready.root.glob(".venv-*")] == []


def test_the_checkout_is_found_in_any_code_page(ready: Checkout) -> None:
    """Before Python 3.13 `site` reads ``.pth`` files in Windows' code page; hatchling writes them in UTF-8."""
    (paths,) = [path for path in ready.venv.rglob("*.pth") if "rankdeck" in path.name]
    assert paths.read_bytes().isascii()
    python = next(path for path in ready.venv.glob("*/python*") if path.stem == "python")
    asked = [str(python), "-c", "import app; print(ascii(app.__file__))"]
    env = {**os.environ, "PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    answer = subprocess.run(asked, cwd=ready.elsewhere, env=env, capture_output=True, text=True, check=False)
    assert "__init__.py" in answer.stdout, answer.stderr


def test_the_second_call_does_nothing_but_start(ready: Checkout) -> None:
    log = (ready.venv / "bootstrap.log").stat().st_mtime_ns
    code, said, err = ready.run("run", "devices")
    assert (code, said["argv"], err) == (0, ["devices"], "")
    assert (ready.venv / "bootstrap.log").stat().st_mtime_ns == log


def test_the_folder_where_the_person_stands_is_kept_and_not_searched(ready: Checkout) -> None:
    # A person's own project may well have a folder named `app`.
    (ready.elsewhere / "app").mkdir(exist_ok=True)
    (ready.elsewhere / "app" / "__main__.py").write_text("raise SystemExit('not this one')", encoding="utf-8")
    code, said, err = ready.run("run", "runs")
    assert code == 0, err
    assert Path(said["cwd"]).samefile(ready.elsewhere)


@pytest.mark.skipif(sys.platform == "win32" and sys.version_info >= (3, 13), reason="there DeepSpeed is not installed")
def test_deepspeed_comes_with_the_rest_and_is_no_reason_to_fail(ready: Checkout) -> None:
    """For Linux from its source, beside packages that are wheels only; without it `run` starts all the same."""
    needs = """["torch", "deepspeed; sys_platform != 'darwin'"]"""
    ready.write("pyproject.toml", PYPROJECT.replace('["torch"]', needs))
    code, said, err = ready.run("run", "devices")
    assert (code, said.get("argv")) == (0, ["devices"]), err
    assert "DeepSpeed could not be installed, so ZeRO uses PyTorch's own engine" in err and "Traceback" not in err
    if sys.platform == "linux":
        make_source(ready.wheels, "deepspeed", "0.19.8")
    else:
        make_wheel(ready.wheels, "deepspeed", "0.16.5", {"deepspeed.py": ""})
    ready.write("constraints.txt", "torch==2.13.0\n# and now it is there\n")
    code, _, err = ready.run("run", "devices")
    assert code == 0 and "installing DeepSpeed" in err and "could not" not in err, err
    assert list(ready.venv.rglob("deepspeed.py"))
    ready.write("pyproject.toml", PYPROJECT)


def test_what_recipes_need_comes_too_and_is_no_reason_to_fail(ready: Checkout) -> None:
    ready.write("pyproject.toml", PYPROJECT.replace("rl = []", 'rl = ["gymnasium>=1"]'))
    code, said, err = ready.run("run", "devices")
    assert (code, said.get("argv")) == (0, ["devices"]), err
    assert "Some recipes cannot be trained" in err and "gymnasium" in err and "Traceback" not in err
    make_wheel(ready.wheels, "gymnasium", "1.4.0", {"gymnasium.py": ""})
    ready.write("constraints.txt", "torch==2.13.0\n# and now it is there, too\n")
    code, _, err = ready.run("run", "devices")
    assert code == 0 and "cannot be trained" not in err, err
    assert list(ready.venv.rglob("gymnasium.py"))
    ready.write("pyproject.toml", PYPROJECT)


def test_test_adds_what_tests_need_and_runs_pytest_offscreen(ready: Checkout) -> None:
    code, said, err = ready.run("test", "-k", "ledger", "5")
    assert code == 5, err
    assert said["argv"] == ["-k", "ledger", "5"]
    assert said["env"]["QT_QPA_PLATFORM"] == "offscreen"
    assert Path(said["cwd"]).samefile(ready.root)
    assert ready.state["extras"] == ["bpe", *(["deepspeed"] if sys.platform == "linux" else []), "hf", "rl", "test"]
    assert "creating .venv" not in err, "what is there is kept"


@pytest.mark.parametrize("words", [(), ("--all",)])
def test_without_other_arguments_the_suite_runs_offscreen(ready: Checkout, words: tuple[str, ...]) -> None:
    code, said, err = ready.run("test", *words)
    assert (code, said["argv"], said["env"]["QT_QPA_PLATFORM"]) == (0, list(words), "offscreen"), err
    assert Path(said["cwd"]).samefile(ready.root)


def test_a_changed_requirement_is_installed_into_what_is_there(ready: Checkout) -> None:
    make_wheel(ready.wheels, "newcomer", "3.0", {"newcomer.py": ""})
    ready.write("pyproject.toml", PYPROJECT.replace('["torch"]', '["torch", "newcomer"]'))
    code, _, err = ready.run("run", "devices")
    assert code == 0, err
    assert "creating .venv" not in err
    assert list(ready.venv.rglob("newcomer.py"))


def test_a_requirement_that_is_not_to_be_had_is_told_with_pips_words(ready: Checkout) -> None:
    ready.write("pyproject.toml", PYPROJECT.replace('["torch"]', '["torch", "nowhere-to-be-found"]'))
    code, said, err = ready.run("run", "devices")
    ready.write("pyproject.toml", PYPROJECT)
    assert (code, said) == (1, {})
    assert "The Python packages could not be installed" in err
    assert "nowhere-to-be-found" in err
    assert "bootstrap.log" in err
    assert "Traceback" not in err


def test_two_at_once_make_one_environment_and_keep_what_was_there_before(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path, torch="2.13.0")  # the third place where it is looked for
    checkout.venv.mkdir()
    (checkout.venv / "precious.txt").write_text("made by somebody else", encoding="utf-8")
    with checkout.start("run", "one") as first, checkout.start("run", "two") as second:
        answers = [process.communicate(timeout=LIMIT_S) for process in (first, second)]
    assert [process.returncode for process in (first, second)] == [0, 0], answers
    assert sorted(json.loads(out)["argv"][0] for out, _ in answers) == ["one", "two"]
    assert sum("creating .venv" in err for _, err in answers) == 1
    (aside,) = checkout.root.glob(".venv-*")
    assert (aside / "precious.txt").exists()


def test_what_is_neither_run_nor_test_is_refused_with_the_usage(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    for arguments in ((), ("install",)):
        code, _, err = checkout.run(*arguments)
        assert code == 2
        assert "bootstrap.py run [ARGS...]" in err
    assert not checkout.venv.exists()


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ((3, 10, 2), "This Python is too old: Rankdeck needs Python 3.11 to 3.14, and this is Python"),
        ((3, 15, 0), "This Python is too new: PyTorch and Qt have no builds for it yet. Rankdeck needs Python 3.11 to"),
    ],
)
def test_another_python_is_told_which_ones_work(
    version: tuple[int, int, int], told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    source = (ROOT / "installer" / "bootstrap.py").read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 4))
    program = f"import sys; sys.version_info = {version}; exec({source!r})"
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 3
    first, second = capfd.readouterr().err.splitlines()
    assert first.startswith(told)
    assert second == "Install Python 3.11, 3.12, 3.13 or 3.14, and run the same command with it."


def test_the_versions_that_work_are_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == ">=3.11,<3.15"
    assert SUPPORTED == "3.11 to 3.14"


def test_a_persons_pythonhome_does_not_lead_the_environment_astray(ready: Checkout) -> None:
    ready.write("pyproject.toml", PYPROJECT)
    code, said, err = ready.run("run", "devices", PYTHONHOME=sys.base_prefix)
    assert (code, said.get("argv")) == (0, ["devices"]), err


def test_a_folder_of_wheels_is_all_that_is_asked(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    wheels = {"PIP_NO_INDEX": "", "PIP_FIND_LINKS": "", "PIP_INDEX_URL": "http://127.0.0.1:1/simple"}
    code, said, err = checkout.run("run", "devices", RANKDECK_WHEELS=str(checkout.wheels), **wheels)
    assert (code, said.get("argv")) == (0, ["devices"]), err
    assert "PyTorch for " in err, "the build is named with its reason"


@pytest.mark.parametrize("name", ["RANKDECK_WHEELS", "SSL_CERT_FILE", "PIP_CERT"])
def test_a_variable_that_names_what_is_not_there_is_named(name: str, tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    code, _, err = checkout.run("run", "devices", **{name: str(tmp_path / "absent")})
    assert code == 3 and not checkout.venv.exists()
    assert f"The variable {name} names a" in err and f"Correct or remove {name}" in err and "Traceback" not in err
