"""Challenge and response: proves that a peer knows a secret, without sending it. Pure.

Used where a connection leaves this machine (docs/launchers.md). On loopback a token is sent as it is.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Final

_NONCE_BYTES: Final = 16


def new_nonce() -> str:
    return secrets.token_hex(_NONCE_BYTES)


def proof(secret: str, *parts: str) -> str:
    """Make the proof of a secret over these parts (HMAC-SHA256)."""
    lengths = ",".join(str(len(part)) for part in parts)  # so that no two lists of parts are one text
    text = "\n".join([lengths, *parts])
    return hmac.new(secret.encode(), text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def rank_proof(token: str, nonce: str, rank: int, attempt: int) -> str:
    """Make the proof that a rank on another machine sends to its host instead of the token."""
    return proof(token, "rank", nonce, str(rank), str(attempt))
