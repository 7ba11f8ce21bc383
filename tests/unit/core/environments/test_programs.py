"""Programs that make an environment: the variables they get, and pip's failure as a sentence."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from core.environments.programs import LOG, PipFailedError, has_pip, pip_of, run_pip


def never() -> bool:
    return False


def test_a_python_that_is_not_there_has_no_pip(tmp_path: Path) -> None:
    assert not has_pip(tmp_path / "python.exe", tmp_path, never)
    assert not (tmp_path / LOG).exists()


def test_pips_failure_is_one_sentence_with_its_log(tmp_path: Path) -> None:
    if not has_pip(Path(sys.executable), tmp_path, never):
        pytest.skip("this Python has no pip")
    arguments = ["install", "--no-index", "--find-links", str(tmp_path), "absent-package==3"]
    with pytest.raises(PipFailedError, match=r"found no build .* absent-package==3") as failed:
        run_pip(pip_of(Path(sys.executable)), tmp_path, arguments, never)
    assert failed.value.missing
    assert str(tmp_path / LOG) in failed.value.next_step
