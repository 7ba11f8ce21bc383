"""A dataset of many small files takes little memory while it is tokenised."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.windows

FILES = 100
# One read of 4 MiB each would keep 400 MB on Windows.
MOST_GROWTH = 100 << 20
PROGRAM = """
import sys
from pathlib import Path
from workers.data.reading.corpus import open_corpus
from workers.data.tokens.token_cache import tokenise
from workers.data.tokens.tokenizer_spec import TokenizerSpec
from workers.host_link.peak_memory import peak_rss_bytes

before = peak_rss_bytes()
made = tokenise(open_corpus(sys.argv[1], {}), TokenizerSpec(), Path(sys.argv[2]))
print(made.tokens, peak_rss_bytes() - before)
"""


def test_many_small_files_take_the_memory_of_their_text(tmp_path: Path) -> None:
    folder = tmp_path / "text"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"{number}.txt").write_bytes(b"some text\n" * 100)
    command = [sys.executable, "-c", PROGRAM, str(folder), str(tmp_path / "cache")]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    tokens, growth = map(int, answer.stdout.split())
    assert tokens >= FILES * 1000
    assert growth < MOST_GROWTH
