"""Names of processes, as they stand beside a GPU."""

from __future__ import annotations

import os

from core.machine.devices.gpu_processes import ProcessNames


def test_this_process_has_a_name_and_one_that_is_gone_has_none() -> None:
    names = ProcessNames()
    found = names.read([os.getpid(), 2**31 - 1])
    assert found[os.getpid()] and found[2**31 - 1] == ""
    assert names.read([]) == {}
