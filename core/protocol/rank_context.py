"""Names of the environment variables in which a rank finds its place: its host, its run, its device."""

from __future__ import annotations

from typing import Final

ENV_PORT: Final = "RANKDECK_PORT"
ENV_TOKEN: Final = "RANKDECK_TOKEN"
ENV_RUN_DIR: Final = "RANKDECK_RUN_DIR"
ENV_ATTEMPT: Final = "RANKDECK_ATTEMPT"
ENV_RENDEZVOUS: Final = "RANKDECK_RENDEZVOUS"
ENV_BACKEND: Final = "RANKDECK_BACKEND"
ENV_MODE: Final = "RANKDECK_MODE"
ENV_ENGINE: Final = "RANKDECK_ENGINE"
ENV_DEVICE: Final = "RANKDECK_DEVICE"
ENV_RECIPE_DIR: Final = "RANKDECK_RECIPE_DIR"
ENV_THREADS: Final = "RANKDECK_THREADS"
"""Processor threads of a rank, for programs of the user's own, whose OMP_NUM_THREADS is not ours to set."""
ENV_GENERATION: Final = "RANKDECK_GENERATION"
ENV_HOST_PID: Final = "RANKDECK_HOST_PID"
ENV_RESTART: Final = "RANKDECK_RESTART"
"""How often this host has started the ranks anew after one of them failed."""
ENV_CONFIG: Final = "RANKDECK_CONFIG"
"""The config of this attempt where it is not `run.toml`'s (after a fallback)."""
ENV_SILENT_AFTER: Final = "RANKDECK_SILENT_AFTER_S"
"""How long a rank that trains may say nothing until the hang watch speaks."""
ENV_RUN_MARK: Final = "RANKDECK_RUN_MARK"
"""Stands in the environment of all processes of an attempt, so that what is left of it is found (Linux)."""
