"""`rankdeck compare` on real run folders."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.cli import main
from core.run_folder.store import RunStore
from tests.helpers.made_runs import TEXT, make_run

pytestmark = pytest.mark.windows


@pytest.fixture
def names(tmp_path: Path, runs_dir: Path) -> tuple[str, str]:
    (tmp_path / "text.txt").write_bytes(TEXT)
    first = make_run(tmp_path, runs_dir=runs_dir)
    second = make_run(tmp_path, "finished", runs_dir=runs_dir, lr=0.25)
    _evaluated(first, 2.5)
    _evaluated(second, 2.0)
    return first.dir.name, second.dir.name


def _evaluated(store: RunStore, value: float) -> None:
    lines = (
        {"event": "launch", "ts": 10.0, "rank": -1, "attempt": 1},
        {"event": "eval", "ts": 70.0, "rank": 0, "attempt": 1, "step": 5, "val_loss": value},
    )
    store.metrics.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    store.write_state(store.stored_state().replace(trained_s=60.0))


def test_a_table_of_what_differs(names: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *names]) == 0
    out = capsys.readouterr().out
    rows = {line[:22].strip(): line.split()[-1] for line in out.splitlines()}
    assert rows["Learning rate"] == "0.25" and "Sequence length" not in out
    assert "2.000 at 5" in out and "1 m 00 s" in out and "finished" in out
    assert "settings are the same. Show them too: --all" in out
    assert main(["compare", *names, "--all"]) == 0
    assert "Sequence length" in capsys.readouterr().out


def test_what_cannot_be_compared_is_refused(names: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", names[0]]) == 2
    assert "2 to 8 different runs" in capsys.readouterr().err
    assert main(["compare", names[0], "no-such-run"]) == 2
    assert "There is no such run" in capsys.readouterr().err
