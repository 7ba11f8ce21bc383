"""Fixtures of tests that start no run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from core.config.config_file import without_version
from core.config.layers import config_from_mapping
from core.errors import RankdeckError
from core.processes.ask import Answer, ask_program
from core.recipes import check as recipe_checks

MINIGPT = str(Path(__file__).parents[2] / "workers" / "recipes" / "minigpt")


@pytest.fixture
def checked_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """MiniGPT's check is called in this process where it accepts: a process of its own takes a third of a second."""
    monkeypatch.setattr(recipe_checks, "ask_program", _ask_here)


def _ask_here(program: Sequence[str], request: Mapping[str, Any], env: Mapping[str, str], limit_s: float) -> Answer:
    if tuple(program) == ("-m", "workers.programs.check_main", MINIGPT) and not env:
        from workers.recipe_api.refusals import Request
        from workers.recipes.minigpt.check import check

        asked = dict(request)
        config = config_from_mapping(without_version(asked.pop("config"), Path(MINIGPT)))
        try:
            notes = check(Request(config, **asked))
        except RankdeckError:
            pass  # what is said then is the program's
        else:
            return Answer({"notes": list(notes), "settings": {}}, "", "exited normally", in_time=True, code=0)
    return ask_program(program, request, env, limit_s)
