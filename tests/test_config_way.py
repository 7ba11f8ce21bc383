"""The config's way from the Start button: how many functions know it."""

from __future__ import annotations

from pathlib import Path

from tests.config_way import Place, config_way

MOST = 20
"""Places today; the number may fall, never rise."""


def test_the_config_stops_at_few_places() -> None:
    places = config_way().places
    assert Place("core.launch.preflight", "check") in places and Place("core.config.config_file", "to_toml") in places
    assert len(places) <= MOST, [f"{place.module}:{place.name}" for place in places]


def test_what_is_counted(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "first.py").write_text(
        """
from app import second
from app.second import Held, Writer

class Window:
    def start(self, config: RunConfig) -> None:
        self._check(config)
        changed = config.replace(steps=3)
        second.number(changed.steps)
        Writer().write(Held(changed))
        nothing(3)

    def _check(self, config: RunConfig | None) -> None: ...

def nothing(number: int) -> None: ...
def elsewhere(config: RunConfig) -> None: ...
""",
        encoding="utf-8",
    )
    (tmp_path / "app" / "second.py").write_text(
        """
class RunConfig:
    def replace(self, other: RunConfig) -> RunConfig: ...

class Held:
    config: RunConfig

class Writer:
    def write(self, held: Held) -> None: ...

def number(steps: int) -> None: ...
""",
        encoding="utf-8",
    )
    way = config_way(tmp_path, "app.first:Window.start")
    assert [place.name for place in way.places] == ["Window.start", "Window._check", "Writer.write"]
    assert [place.name for place in way.single] == ["number"]
