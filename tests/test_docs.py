"""The documentation is tested: every command in it is understood by the program, every link leads somewhere."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.cli.parser import parse
from core.config.run_config import FIELD_BY_NAME
from core.errors import RankdeckError
from core.launch.command_line import request_from_arguments
from core.recipes.scaffold import new_recipe
from installer.start import EXTRAS
from tests.benchmarks import run_all

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tests/**/*.md")])
BOOTSTRAP = "python installer/bootstrap.py "
# A launcher, up to the command that it starts; tests/runs/launchers run them.
LAUNCHED = re.compile(r"(torchrun|mpirun|srun) [^|;]*?(rankdeck|-m core) ")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def fenced_lines(text: str) -> Iterator[tuple[str, str]]:
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            yield language, line


def commands() -> list[tuple[str, str]]:
    """Every command line of the documentation: (page, words after `rankdeck` or after `bootstrap.py run`)."""
    found = []
    for page in PAGES:
        for language, line in fenced_lines(page.read_text(encoding="utf-8")):
            for start in ("rankdeck ", BOOTSTRAP + "run "):
                if not language and line.startswith(start):
                    found.append((name_of(page), line.removeprefix(start)))
            if not language and (launched := LAUNCHED.match(line)):
                found.append((name_of(page), line[launched.end() :]))
    return found


def test_there_are_commands_to_check() -> None:
    assert len(commands()) > 25


@pytest.mark.parametrize(("page", "words"), commands())
def test_a_command_is_understood(page: str, words: str) -> None:
    try:
        if "my-model" in shlex.split(words):
            new_recipe("my-model")  # the one that docs/recipes.md has the reader make
        arguments = parse(shlex.split(words))
        if arguments.command == "train" and not arguments.config:
            assert request_from_arguments(arguments).recipe.name
    except RankdeckError as error:
        pytest.fail(f"{page}: rankdeck {words}\n{error}")


SETUP_PROGRAMS = ("installer/windows/build.py", "installer/windows/smoke.py")


def test_other_commands_are_ours() -> None:
    unknown = []
    for page in PAGES:
        for language, line in fenced_lines(page.read_text(encoding="utf-8")):
            if language or not line or line.startswith(("rankdeck ", " ")) or LAUNCHED.match(line):
                continue
            words = shlex.split(line)
            if line.startswith(BOOTSTRAP):
                known = words[2] in EXTRAS
            elif words[:2] == ["python", "-m"]:
                known = (ROOT / (words[2].replace(".", "/") + ".py")).is_file()
                asked = [word for word in words[3:] if not word.startswith("-") and not word.endswith(".csv")]
                known = known and len(run_all.benchmarks(asked)) >= len(asked)
            elif words[0] == "python" and words[1] in SETUP_PROGRAMS:
                source = (ROOT / words[1]).read_text(encoding="utf-8")
                known = all(f'"{word}"' in source for word in words[2:] if word.startswith("--"))
            else:
                known = line.startswith("../shared/tools/")
            if not known:
                unknown.append(f"{name_of(page)}: {line}")
    assert unknown == []


OF_RANKDECK = {
    "--config", "--devices", "--set", "--run-dir", "--runs-dir", "--json", "--detach", "--dry-run", "--now", "--window",
}  # fmt: skip
OF_RUN = {"--python", "--cwd", "--restarts", "--no-torchrun", "--env", "--map", "--stop-signal", "--stop-deadline-s"}
OF_RUNS = {"--remove", "--live", "--permanently"}
OF_SLURM = {"--slurm", "--nodes", "--gpus-per-node", "--sbatch", "--mem", "--time", "--cpus-per-task"}
OF_EXPORT = {
    "--to",
    "--out",
    "--dtype",
    "--overwrite",
    "--checkpoint",
    "--samples",
    "--step",
    "--folder",
}
OF_RESUME = {"--checkpoint", "--yes", "--trust-recipe"}
OF_PREVIEW = {"--all", "--documents"}
OF_OTHERS = {
    "--self-test", "--zip", "--history", "--price-kwh", "--price-gpu-hour", "--save", "--help", "--logdir", "--csv",
    "--strict", "--seconds", "--counts", "--turns",
}  # fmt: skip
OF_SETUP = {
    "--wheels", "--sign", "--build", "--extra", "--drive", "--models", "--runs", "--source",
}  # fmt: skip
OF_MACHINES = {"--machine", "--identity", "--port", "--starter", "--remote-runs-dir"}
OF_AIOS = {"--halt-max-steps", "--num-episodes", "--num-gpus", "--cuda-ids"}


def test_flags_in_the_text_exist() -> None:
    known = {f"--{name.replace('_', '-')}" for name in FIELD_BY_NAME}
    known |= {"--max-restarts", "--nnodes", "--ntasks", "--signal"}  # of torchrun and Slurm
    known |= OF_RANKDECK | OF_RUN | OF_RESUME | OF_EXPORT | OF_RUNS | OF_PREVIEW | OF_OTHERS | OF_SETUP | OF_AIOS
    known |= OF_MACHINES | OF_SLURM
    wrong = []
    for page in PAGES:
        for code in re.findall(r"`([^`\n]+)`", page.read_text(encoding="utf-8")):
            flags = re.findall(r"(?<![\w-])--[a-z][\w-]+", code)
            wrong += [f"{name_of(page)}: {flag}" for flag in flags if flag not in known]
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{name_of(page)} links to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in slugs, f"{name_of(page)} links to {target}"


def test_paths_named_in_the_text_exist() -> None:
    """Inline code such as `tests/helpers/leaks.py` names a file or folder of the checkout."""
    missing = []
    for page in PAGES:
        for code in re.findall(
            r"`((?:app|core|workers|resources|tests|installer|docs)/[\w./-]*)`", page.read_text(encoding="utf-8")
        ):
            if not (ROOT / code).exists():
                missing.append(f"{name_of(page)}: {code}")
    assert missing == []


def test_the_readme_begins_with_the_two_commands_and_a_picture() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = [line for _, line in fenced_lines(text)]
    assert lines[:2] == ["python installer/bootstrap.py run", "python installer/bootstrap.py test"]
    assert text.index("![") < text.index("\n## ")


def test_the_version_is_said_once_each() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f'__version__ = "{version}"' in (ROOT / "core" / "__init__.py").read_text(encoding="utf-8")


def test_the_decisions_are_numbered_and_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    files = sorted(path.name for path in folder.glob("0*.md"))
    numbers = [int(name[:4]) for name in files]
    assert numbers == sorted(set(numbers)), "a number is given once, and not again to another decision"
    index = (folder / "README.md").read_text(encoding="utf-8")
    assert all(f"({name})" in index for name in files)


def test_what_wine_lacks_is_listed() -> None:
    page = (ROOT / "docs" / "windows-tests.md").read_text(encoding="utf-8")
    marked = [
        cause
        for path in (ROOT / "tests").rglob("test_*.py")
        for cause in re.findall(r'not_under_wine\(\s*"([^"]+)"', path.read_text(encoding="utf-8"))
    ]
    assert len(marked) > 5 and [cause for cause in marked if f"| {cause} |" not in page] == []


def test_the_changelog_says_each_thing_once() -> None:
    """Lines that two branches moved come back when both sides of a conflict are kept."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    beginnings = [line[:30] for line in text.splitlines() if line.startswith("* ")]
    assert [line for line in set(beginnings) if beginnings.count(line) > 1] == []
