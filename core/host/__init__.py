"""The run host: the process that owns a run's ranks and is the only writer of its folder.

``python -m core.host RUN_DIR`` is started detached, so that the window may come and go. Read `host` for the whole,
`states` for the states of a run and the phases of an attempt, `lifecycle` for one attempt after another and `attempt`
for one start of the ranks. `fallback`, `failures`, `stop_ladder` and `commits.coordinator` decide and touch nothing.
"""
