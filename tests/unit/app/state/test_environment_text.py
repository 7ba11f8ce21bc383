"""Texts of the page that sets up PyTorch."""

from __future__ import annotations

import pytest

from app.state.environment_text import EXTRAS, build_text, share_of
from core.environments.make import Progress
from core.environments.wanted import OFFERED
from core.machine.torch_builds import NvidiaDriver

pytestmark = pytest.mark.windows


@pytest.mark.parametrize(
    ("driver", "text"),
    [
        (None, "for the CPU: no NVIDIA driver was found"),
        (NvidiaDriver(580, (8, 9)), "CUDA 13.0, which suits your NVIDIA driver 580."),
        (NvidiaDriver(551, (6, 1)), "CUDA 12.6, which suits your NVIDIA driver 551."),
        (NvidiaDriver(), "CUDA 13.0, which suits your NVIDIA driver."),
    ],
)
def test_the_build_is_named_with_its_reason(driver: NvidiaDriver | None, text: str) -> None:
    assert text in build_text(driver)


def test_what_can_be_added_exists() -> None:
    assert {extra.name for extra in EXTRAS} <= set(OFFERED)


def test_the_share_is_known_while_something_is_downloaded() -> None:
    assert share_of(Progress("Testing it")) is None
    assert share_of(Progress("Downloading", 0, 4)) == 0
    assert share_of(Progress("Downloading", 1, 4)) == 250
    assert Progress("Downloading", 1_000_000, 4_000_000).text == "Downloading: 1 MB of 4 MB"
    assert Progress("Testing it").text == "Testing it"
