"""Secrets in diagnostics: by their names and forms, in every way in which programs write them."""

from __future__ import annotations

import json

import pytest

from core.doctor.secrets import without_secrets

pytestmark = pytest.mark.windows


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('WANDB_API_KEY = "0123 abc"', 'WANDB_API_KEY = "<secret>"'),
        (r'{"password": "a\\b\"c"}', '{"password": "<secret>"}'),
        (r'"{\"token\": \"abc\"}"', r'"{\"token\": \"<secret>\"}"'),
        ("https://bob:pw@example.com/x", "https://<secret>@example.com/x"),
        ('"tokens_per_s": 1.5e3, "tokens_seen": 4', '"tokens_per_s": 1.5e3, "tokens_seen": 4'),
        ('tokenizer = "gpt2"', 'tokenizer = "gpt2"'),
    ],
)
def test_what_stands_around_a_secret_stays(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


@pytest.mark.parametrize("piece", ["a", "a:", "a.b-", "C:\\", "token", "1.", "://a:", "home/", "\\u00"])
def test_no_text_takes_long(piece: str) -> None:
    """A minute's limit of the test: each pattern looks a bounded way ahead."""
    without_secrets(piece * 50_000)


def test_values_of_secret_variables_are_found_anywhere() -> None:
    variables = {"MY_API_KEY": "rather-secret-value", "AUTH": "always", "KEYS": "/home/x/keys"}
    text = "x rather-secret-value y always /home/x/keys"
    assert without_secrets(text, variables) == "x <secret> y always /home/x/keys"


def test_json_stays_json() -> None:
    value = {"path": r"C:\Users\Anna\runs", "token": 'x"y', "n": 3}
    assert json.loads(without_secrets(json.dumps(value))) == {**value, "token": "<secret>"}


KEY = "\n".join(
    ("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDJ0c5m", "s3cr3tBodyQIBADANBgkqhkiG9w0BAQEFAASCBK==", "")
)
SECRETS = (
    *("--password s3cr3t", "--password=s3cr3t", "--password 's3cr3t'", '--password "s3cr3t"', "--token=s3cr3t"),
    *("--hf-token s3cr3t", "--api-key s3cr3t", "--auth s3cr3t", "-password s3cr3t", "--wandb-api-key s3cr3t -n 3"),
    *('["train.py", "--password", "s3cr3t"]', "['--token', 's3cr3t']", 'arguments = "--lr 1 --password s3cr3t"'),
    *("sshpass -p s3cr3t ssh box", "sshpass -ps3cr3t ssh box", "mysql -u me -ps3cr3t", "redis-cli -a s3cr3t ping"),
    *("docker login -u me -p s3cr3t", "wget --password=s3cr3t x", "curl -u me:s3cr3t https://x", "HF_TOKEN=s3cr3t"),
    *("export DB_PASSWORD='s3cr3t'", "set PGPASSWORD=s3cr3t", "MYSQL_PWD=s3cr3t", "$env:API_KEY = 's3cr3t'"),
    *("https://me:s3cr3t@host/x", "postgresql://me:s3cr3t@db:5432/x", "hf_s3cr3ts3cr3ts3cr3t"),
    *("ghp_s3cr3ts3cr3ts3cr3t00", "sk-proj-s3cr3ts3cr3ts3cr3t", "passphrase: s3cr3t", "private_key = s3cr3t"),
    *("Authorization: Bearer s3cr3t", "authorization: Basic s3cr3t", '"Authorization": "Token s3cr3t"'),
    *("X-Api-Key: s3cr3t", "Proxy-Authorization: Digest s3cr3t"),
    *(
        f"-----BEGIN {kind}PRIVATE KEY-----\n{KEY}-----END {kind}PRIVATE KEY-----"
        for kind in ("", "RSA ", "OPENSSH ", "EC ")
    ),
    f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{KEY}-----END PGP PRIVATE KEY BLOCK-----",
    json.dumps({"x": f"-----BEGIN PRIVATE KEY-----\n{KEY}-----END PRIVATE KEY-----"}),
    f"-----BEGIN PRIVATE KEY-----\n{KEY}",
    f"{KEY}-----END PRIVATE KEY-----",
    json.dumps(f"{KEY}-----END PRIVATE KEY-----"),
    f"-----BEGIN PRIVATE KEY-----\r\n{KEY}".replace("\n", "\r\n"),
    f"PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 2\n{KEY}Private-MAC: 1",
)


@pytest.mark.parametrize("text", SECRETS)
def test_secrets_by_their_names_and_forms(text: str) -> None:
    shown = without_secrets(f"before\n{text}\n")
    assert "s3cr3t" not in shown and shown.startswith("before\n")


NO_SECRETS = (
    *("--tokens byte", "--max-tokens 500", "tokens_per_s: 500", "--tokenizer gpt2", "rankdeck train -p 8080"),
    *("ssh -p 22 box", "token 5 of 9", "--seed 1", "author: 5", "--author-notes x", "mkdir -p runs/a"),
    *("step 5 loss 2", "checkpoints/2/weights.safetensors"),
    "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0\n-----END CERTIFICATE-----",
)


@pytest.mark.parametrize("text", NO_SECRETS)
def test_what_is_no_secret_stays(text: str) -> None:
    assert without_secrets(text) == text
