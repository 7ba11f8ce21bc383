"""Data as people have it, from the file to trained ranks: limits, a cache that is emptied, a kill."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from core.paths import token_cache_dir
from core.run_folder.store import RunStore
from tests.helpers.hosted_run import curve, host, lines, make_run
from tests.helpers.written import write_rows

pytestmark = [pytest.mark.windows, pytest.mark.slow, pytest.mark.timeout(180)]


def texts() -> list[str]:
    return [f"document {number}: the größe of {number * number % 997} is not {number % 7}." for number in range(400)]


def spoil(path: Path) -> Path:
    """Adds three bad rows to a plain .jsonl file."""
    with path.open("ab") as file:
        file.write(b'{"text": \n{"text": ""}\n{"text": "\xff"}\n')
    return path


def events_of(store: RunStore) -> list[dict[str, Any]]:
    return lines(store, "data")


def test_bad_rows_fail_a_run_past_a_limit_only(tmp_path: Path) -> None:
    dataset = spoil(write_rows(tmp_path / "rows.jsonl", texts()))
    strict = make_run(tmp_path / "strict", dataset, "single", 1, steps=2, options={"max_bad_rows": "1"})
    assert host(strict) == 2
    error = strict.state().error
    assert error is not None and "3 of 403 rows are bad" in error["cause"] and "max_bad_rows" in error["next_step"]
    mild = make_run(tmp_path / "mild", dataset, "single", 1, steps=2, options={"max_bad_rows": "1%"})
    assert host(mild) == 0
    (event,) = events_of(mild)
    assert event["reused"] and event["bad"] == {"broken": 1, "empty": 1, "invalid_utf8": 1}
    assert any(alert["kind"] == "bad_rows" for alert in lines(mild, "alert"))
    info = json.loads((mild.data / "data.json").read_text(encoding="utf-8"))["info"]
    assert (info["rows"], info["bad_rows"]) == (403, 3)


def test_a_run_goes_on_when_the_cache_was_emptied(tmp_path: Path) -> None:
    options = {"text_column": "body"}
    dataset = write_rows(tmp_path / "rows.jsonl", texts(), column="body")
    whole = make_run(tmp_path / "whole", dataset, "single", 1, steps=12, options=options)
    assert host(whole) == 0
    store = make_run(tmp_path / "stopped", dataset, "single", 1, steps=12, options=options)
    assert host(store, stop_at=4) == 0
    shutil.rmtree(token_cache_dir())
    assert host(store) == 0
    assert curve(store) == curve(whole)


def test_a_run_killed_while_it_tokenises_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "Ördner"
    folder.mkdir()
    for number in range(3):
        write_rows(folder / f"{number}.jsonl.gz", texts()[number::3])
    whole = make_run(tmp_path / "whole", folder, "single", 1, steps=4)
    assert host(whole) == 0
    for moment in ("tokens_written", "before_index"):
        shutil.rmtree(token_cache_dir())
        store = make_run(tmp_path / moment, folder, "single", 1, steps=4)
        assert host(store, moment) != 0
        assert host(store) == 0
        assert curve(store) == curve(whole), moment
