"""Output in a process of its own: UTF-8 whatever the console says, and a reader that has gone is no error."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.windows


def test_output_is_utf8_whatever_the_console_says() -> None:
    code = "from core.cli.terminal import Terminal; Terminal().say('größe – 你好')"
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, timeout=60, check=True)
    assert result.stdout.decode("utf-8").strip() == "größe – 你好"


def test_a_reader_that_has_gone_is_no_error() -> None:
    code = (
        "from core.cli.terminal import Terminal\n"
        "import sys\n"
        "sys.stdin.readline()\n"
        "t = Terminal()\n"
        "for n in range(20000): t.data('x' * 50)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdout.close()
        process.stdin.write(b"go\n")
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0
