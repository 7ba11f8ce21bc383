"""Proofs of a secret that does not travel."""

from __future__ import annotations

import pytest

from core.protocol.challenge import new_nonce, proof, rank_proof


def test_a_proof_is_right_for_its_secret_and_parts_alone() -> None:
    made = proof("secret", "client", "a", "b")
    assert made == proof("secret", "client", "a", "b")
    assert made != proof("other", "client", "a", "b") and made != proof("secret", "server", "a", "b")
    assert "secret" not in made


@pytest.mark.parametrize("parts", [("ab", "c"), ("a\nb", "c"), ("a", "b", "c"), ("abc",)])
def test_parts_that_read_alike_have_other_proofs(parts: tuple[str, ...]) -> None:
    assert proof("secret", "a", "bc") != proof("secret", *parts)


def test_each_rank_attempt_and_challenge_has_its_own() -> None:
    nonces = [new_nonce() for _ in range(3)]
    assert len(set(nonces)) == 3
    made = {rank_proof("token", nonce, rank, attempt) for nonce in nonces for rank in (0, 1) for attempt in (1, 2)}
    assert len(made) == 12
