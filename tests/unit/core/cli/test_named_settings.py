"""Settings that a flag names: no command lets a recipe fit them, and each says what the recipe notes."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.cli.entry import main
from core.errors import ConfigError

MANIFEST = """
format = "rankdeck-recipe"
version = 1
name = "mine"
title = "Mine"
check = "check.py"
[defaults]
seq_len = 64
lr = 0.5
"""
CHECK = """
import json, sys
with open(sys.argv[1], encoding="utf-8") as file:
    at_default = json.load(file)["at_default"]
print(json.dumps({"field": "seq_len", "cause": f"Fitted: {sorted(at_default)}.", "next_step": "Name it."}))
"""


@pytest.fixture
def flags(tmp_path: Path) -> list[str]:
    folder = tmp_path / "ü" / "mine"
    folder.mkdir(parents=True)
    for name, text in (("recipe.toml", MANIFEST), ("train.py", ""), ("check.py", CHECK)):
        (folder / name).write_text(text, encoding="utf-8")
    (tmp_path / "text.txt").write_text("some words\n" * 400, encoding="utf-8")
    text = str(tmp_path / "text.txt")
    return ["--recipe", str(folder), "--devices", "cpux2", "--dataset-file", text, "--runs-dir", str(tmp_path / "runs")]


@pytest.mark.parametrize("command", [["train"], ["estimate"], ["tune"], ["bench", "weak"]], ids=lambda it: it[0])
def test_no_command_lets_a_recipe_fit_what_a_flag_names(
    command: list[str], flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, *flags]) == ConfigError.exit_code
    assert "Fitted: ['lr', 'seq_len']" in capsys.readouterr().err
    assert main([*command, *flags, "--seq-len", "64"]) == ConfigError.exit_code
    assert "Fitted: ['lr']" in capsys.readouterr().err
