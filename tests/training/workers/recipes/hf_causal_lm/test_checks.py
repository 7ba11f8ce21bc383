"""What is refused before a rank is started, by the process that checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.config import RunConfig
from core.machine.packages import MissingPackageError
from core.recipes.catalog import get_recipe
from core.recipes.check import check_by_recipe
from core.recipes.manifest import apply_recipe

pytestmark = pytest.mark.windows


def settings(**changes: Any) -> RunConfig:
    return apply_recipe(RunConfig(recipe="hf_causal_lm", seq_len=32, lr=1e-3, **changes), get_recipe("hf_causal_lm"))


def test_without_peft_lora_says_which_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python in which peft cannot be imported, in the process that checks."""
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    hide = "u.find_spec = lambda name, *rest: None if name == 'peft' else find(name, *rest)"
    (blocked / "sitecustomize.py").write_text(
        f"import importlib.util as u\nfind = u.find_spec\n{hide}\n", encoding="utf-8"
    )
    monkeypatch.setenv("PYTHONPATH", str(blocked))
    with pytest.raises(MissingPackageError, match="LoRA needs the package peft") as caught:
        check_by_recipe(settings(options={"training": "lora"}), get_recipe("hf_causal_lm"))
    assert "[hf]" in caught.value.next_step
