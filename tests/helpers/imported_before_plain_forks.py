"""Imports what hosts, fake ranks and ranks that run scripts need, once, in the process that they are forked from."""

from __future__ import annotations

import core.host.__main__  # noqa: F401
import tests.helpers.fake_rank
import tests.helpers.forked_host  # noqa: F401
import workers.script.rank  # noqa: F401
