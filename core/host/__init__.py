"""The run host: the process that owns a run's ranks and is the only writer of its folder.

``python -m core.host RUN_DIR`` is started detached, so that the window may come and go. Read `host` for the whole,
`states` for what a run goes through, `attempt` for one start of its ranks; `commits`, `gathering`, `failures` and
`stop_ladder` decide and touch nothing, `metrics_sink`, `status_board`, `ledger_keeper` and `device_samples` each
carry out one thing.
"""
