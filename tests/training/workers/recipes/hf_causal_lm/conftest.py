"""Hugging Face's libraries in the tests' own process: no progress bars, and no thread that watches them."""

from __future__ import annotations

import importlib.util

import pytest


@pytest.fixture(autouse=True, scope="session")
def _no_bars() -> None:
    if importlib.util.find_spec("transformers") is not None:
        from tqdm import tqdm
        from transformers.utils import logging

        logging.disable_progress_bar()
        tqdm.monitor_interval = 0
