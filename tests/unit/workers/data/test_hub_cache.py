"""Where downloaded models lie, as the package huggingface_hub has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers.data.model_tokenizer import hub_cache, snapshot_folder

pytestmark = pytest.mark.windows
VARIABLES = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME")


@pytest.mark.parametrize(
    ("values", "parts"),
    [
        (("a", "b", "c", "d"), ("a",)),
        ((" ", "b", "c", "d"), ("b",)),
        (("", "", "c", "d"), ("c", "hub")),
        (("", "", "", "d"), ("d", "huggingface", "hub")),
    ],
)
def test_the_first_variable_that_is_set_counts(
    values: tuple[str, ...], parts: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in zip(VARIABLES, values, strict=True):
        monkeypatch.setenv(name, str(tmp_path / value) if value.strip() else value)
    assert hub_cache() == tmp_path.joinpath(*parts)


def test_without_a_variable_it_is_in_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert hub_cache() == Path.home() / ".cache" / "huggingface" / "hub"


def test_a_branch_a_commit_and_what_is_not_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    root = tmp_path / "models--owner--name"
    for commit in ("c0ffee", "decade"):
        (root / "snapshots" / commit).mkdir(parents=True)
    assert snapshot_folder("owner/name") is None
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text("c0ffee\n", encoding="utf-8")
    (root / "refs" / "lost").write_text("gone", encoding="utf-8")
    assert snapshot_folder("owner/name") == root / "snapshots" / "c0ffee"
    assert snapshot_folder("owner/name", "decade") == root / "snapshots" / "decade"
    assert snapshot_folder("owner/name", "lost") is None
    assert snapshot_folder("gpt2") is None
