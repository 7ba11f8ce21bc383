"""Processes of Rankdeck: their ownership, their start and their end, by each platform's rules.

* `ProcessTree` owns the ranks of a run host. When the host ends, however it ends, they end too.
* `spawn_detached` starts a run host that outlives the process that started it.

Windows: one Job Object with kill-on-close; a child is put into it before its first instruction. Linux: a session for
each child, `PR_SET_PDEATHSIG`, a mark in the environment of all, and a watcher process that ends the rest of those
sessions and marks when the host is gone. Where host and watcher were killed together, `end_marked` ends them later.
"""

from core.processes.detached import spawn_detached
from core.processes.exit_codes import describe_exit, ended_by_force, exit_advice, is_crash
from core.processes.marks import end_marked, find_marked, folder_mark, new_mark
from core.processes.tree import Child, ProcessTree

__all__ = [
    "Child",
    "ProcessTree",
    "describe_exit",
    "end_marked",
    "ended_by_force",
    "exit_advice",
    "find_marked",
    "folder_mark",
    "is_crash",
    "new_mark",
    "spawn_detached",
]
