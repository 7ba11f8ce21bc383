"""Modules of a person's own, found through their PYTHONPATH: in the recipe's check, in its rank, in its preview."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from core.recipes.scaffold import new_recipe
from tests.helpers import run_logs

pytestmark = [pytest.mark.windows, pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[3]
CHECK = """
import json, os, found_absolute, found_relative
signs = f"{found_absolute.SIGN}, {found_relative.SIGN} and {os.environ['THEIR_VALUE']}"
print(json.dumps({"notes": [f"Checked with {signs}."]}))
"""
TRAIN = "import os, found_absolute, found_relative\nassert os.environ['THEIR_VALUE'] == 'a b'\n"
SMALL = ("--mode", "single", "--steps", "3", "--dataset-file", "a text.txt", "--precision", "fp32")
VALUE = ("--env", "THEIR_VALUE=a b")

# Without PYTHONPATH, as an installed `rankdeck` starts: only what the test puts there is in it.
PROGRAM = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from core.cli.entry import main; sys.exit(main())"


def rankdeck(folder: Path, *words: str, env: Mapping[str, str]) -> str:
    runs = folder / "Läufe mit Raum"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        cwd=folder,
        env={**os.environ, "RANKDECK_HOME": str(runs), "PYTHONUTF8": "1", **env},
        capture_output=True,
        encoding="utf-8",
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, (done.stdout, done.stderr, run_logs.sections(runs))
    return done.stdout + done.stderr


def test_a_recipe_finds_the_persons_modules_wherever_it_runs(tmp_path: Path) -> None:
    for name in ("absolute", "relative"):
        libraries = tmp_path / f"{name} libraries"
        libraries.mkdir()
        (libraries / f"found_{name}.py").write_text(f"SIGN = 'theirs ({name})'\n", encoding="utf-8")
        (libraries / "core.py").write_text("raise RuntimeError('not to be taken for ours')\n", encoding="utf-8")
    recipe = new_recipe("mine", tmp_path)
    for file, text in (("check.py", CHECK), ("train.py", TRAIN + (recipe / "train.py").read_text(encoding="utf-8"))):
        (recipe / file).write_text(text, encoding="utf-8", newline="\n")
    manifest = recipe / "recipe.toml"
    manifest.write_text(
        manifest.read_text(encoding="utf-8").replace("\n[defaults]", 'check = "check.py"\n\n[defaults]', 1),
        encoding="utf-8",
    )
    (tmp_path / "a text.txt").write_text("some words of text\n" * 2000, encoding="utf-8", newline="\n")
    env = {"PYTHONPATH": os.pathsep.join([str(tmp_path / "absolute libraries"), "relative libraries"])}
    seen = rankdeck(tmp_path, "train", "--recipe", str(recipe), "--devices", "cpu:0", *SMALL, *VALUE, env=env)
    assert "Checked with theirs (absolute), theirs (relative) and a b." in seen
    rankdeck(tmp_path, "preview", "--recipe", str(recipe), "--dataset-file", "a text.txt", *VALUE, env=env)
