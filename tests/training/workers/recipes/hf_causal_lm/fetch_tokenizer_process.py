"""Fetches the tokenizer of owner/name from the Hub that HF_ENDPOINT names; run by `test_download`."""

from __future__ import annotations

import json
import sys

from workers.data.model_tokenizer import TokenizerError, download_tokenizer

if __name__ == "__main__":
    try:
        found = {"folder": str(download_tokenizer("owner/name"))}
    except TokenizerError as error:
        found = {"title": error.title, "cause": error.cause, "next_step": error.next_step}
    sys.stdout.write(json.dumps(found) + "\n")
