"""What a folder of results holds during a benchmark, and when its disk refuses."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from core.errors import RankdeckError
from core.measure.bench.contenders import Kind
from core.measure.bench.folder import ENVIRONMENT, RESULTS, BenchFolder
from core.measure.bench.table import table_of
from tests.unit.core.measure.bench.made import WEAK, bench


def test_the_table_is_kept_after_every_turn(tmp_path: Path) -> None:
    folder = BenchFolder.make(tmp_path / "Ergebnisse", {"cpu": "a"})
    folder.keep(bench(Kind.WEAK, {}))
    assert [path.name for path in folder.path.iterdir()] == [ENVIRONMENT], "nothing was measured yet"
    first, both = bench(Kind.WEAK, {0: WEAK[0]}), bench(Kind.WEAK, WEAK)
    for measured in (first, both):
        folder.keep(measured)
        assert (folder.path / RESULTS).read_text(encoding="utf-8") == table_of(measured).as_csv()


def test_a_disk_that_refuses_is_told_at_the_end(tmp_path: Path) -> None:
    folder = BenchFolder.make(tmp_path / "gone", {})
    shutil.rmtree(folder.path)
    folder.keep(bench(Kind.WEAK, WEAK))
    with pytest.raises(RankdeckError, match="could not be written"):
        folder.write(bench(Kind.WEAK, WEAK))
