"""The price files of a run: refused, or kept as one market."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("gymnasium", reason="the trading environment has its spaces")

from rankdeck.recipe import ConfigError
from tests.unit.workers.recipes.clstm_ppo.made import typed_options
from tests.unit.workers.recipes.clstm_ppo.test_prices import write
from tests.unit.workers.recipes.clstm_ppo.test_trading import made_market
from workers.recipes.clstm_ppo.trading import load_market, open_files, save_market

SERIES = "Date,Open,Close\n" + "".join(f"2024-{1 + day // 28:02}-{1 + day % 28:02},5,{day + 1}\n" for day in range(300))
PLAIN: dict[str, Any] = {"price_column": "", "max_gap": 10.0, "max_bad_rows": 0.05, "val_fraction": 0.2, "window": 4}


@pytest.mark.parametrize(
    ("text", "changes", "field", "said"),
    [
        (SERIES, {"price_column": "Clsoe"}, "price_column", "Date, Open, Close"),
        (SERIES, {"price_column": "Date"}, "price_column", "0 usable prices"),
        ("a,b\n1,2\n3,4\n", {}, "price_column", "cannot be guessed"),
        ("Date,Close\n2024-01-01,x\n", {}, "price_column", "0 usable prices"),
        ("", {}, "dataset_file", "empty"),
        ("\n".join(SERIES.splitlines()[:32]), {}, "dataset_file", "longest stretch has 31"),
        (SERIES, {"window": 200}, "dataset_file", "a window of 200"),
        (
            SERIES.replace(",7\n", ",\n").replace(",9\n", ",\n"),
            {"max_bad_rows": 0.001},
            "max_bad_rows",
            "2 of 300 rows",
        ),
    ],
)
def test_a_file_that_cannot_be_traded_on_is_refused(
    tmp_path: Path, text: str, changes: dict[str, Any], field: str, said: str
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        open_files(str(path), lambda: [path], typed_options(**PLAIN | changes))
    assert caught.value.field == field and caught.value.next_step
    assert said in f"{caught.value.cause} {caught.value.next_step}"


def test_what_is_held_out_is_later_and_never_trained_on(tmp_path: Path) -> None:
    market = made_market()
    assert [(stretch.first, stretch.past) for stretch in market.training] == [(0, 150), (200, 250), (250, 275)]
    assert [(stretch.first, stretch.past) for stretch in market.held_out] == [(150, 200), (275, 300)]
    kept = load_market(tmp_path, save_market(tmp_path, market))
    assert (
        (kept.prices == market.prices).all() and kept.training == market.training and kept.held_out == market.held_out
    )
