"""The variable in which a rank finds its place: read back equal, and refused when it is not whole."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from core.errors import UsageError
from core.protocol.rank_context import ENV_RANK, RankContext

pytestmark = pytest.mark.windows

CONTEXT = RankContext(
    rank=1,
    world_size=2,
    device="cuda:0",
    mode="zero",
    engine="torch",
    backend="gloo",
    rendezvous="file:///tmp/x",
    threads=3,
    run_dir=Path("Läufe mit Raum") / "日本",
    recipe_dir=Path("recipes") / "mine",
    attempt=2,
    restarts=1,
    checkpoint=Path("Läufe mit Raum") / "日本" / "checkpoints" / "4",
    port=4321,
    token="s3cret",
    host_pid=77,
)


def test_it_is_read_back_as_it_was_written() -> None:
    environment = CONTEXT.to_env()
    assert list(environment) == [ENV_RANK] and environment[ENV_RANK].isascii()
    assert RankContext.from_env(environment) == CONTEXT
    first = dataclasses.replace(CONTEXT, checkpoint=None)
    assert RankContext.from_env(first.to_env()) == first
    assert CONTEXT.config_file == CONTEXT.run_dir / "attempt.toml"


def test_the_token_is_in_no_printed_form() -> None:
    assert "s3cret" not in f"{CONTEXT!r} {CONTEXT}"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rank": "1"}, "rank holds text; it must be a whole number"),
        ({"colour": "red"}, "colour is not known"),
        (None, "it holds a list; it must be an object"),
    ],
)
def test_what_is_not_whole_is_refused(change: dict[str, Any] | None, words: str) -> None:
    values = [] if change is None else {**json.loads(CONTEXT.to_env()[ENV_RANK]), **change}
    with pytest.raises(UsageError, match=words) as caught:
        RankContext.from_env({ENV_RANK: json.dumps(values)})
    assert "started by its run host" in caught.value.cause


@pytest.mark.parametrize("text", [None, "", "{"])
@pytest.mark.parametrize("program", ["workers.programs.rank_main", "workers.recipes.script.rank"])
def test_a_rank_that_is_started_by_hand_says_what_to_use(program: str, text: str | None) -> None:
    environment = {name: value for name, value in os.environ.items() if name != ENV_RANK}
    environment |= {} if text is None else {ENV_RANK: text}
    argv = [sys.executable, "-m", program]
    ended = subprocess.run(argv, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=60)
    assert ended.returncode == 1
    assert "A rank is started by its run host" in ended.stderr and "rankdeck train" in ended.stderr
    assert "Traceback" not in ended.stderr
