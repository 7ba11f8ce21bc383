"""Fetches owner/name from the Hub that HF_ENDPOINT names, and prints what was said; run by `test_download`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rankdeck.recipe import ConfigError
from workers.recipes.hf_causal_lm.download import local_folder
from workers.recipes.hf_causal_lm.source import find_source

if __name__ == "__main__":
    said: list[str] = []
    try:
        folder: Path = local_folder(find_source("owner/name"), True, said.append)
        found = {"folder": str(folder)}
    except ConfigError as error:
        found = {"title": error.title, "cause": error.cause, "next_step": error.next_step}
    sys.stdout.write(json.dumps({"said": said, **found}) + "\n")
