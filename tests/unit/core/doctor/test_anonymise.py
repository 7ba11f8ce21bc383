"""Names of people and machines, as hostile as they come, in every form in which programs write them."""

from __future__ import annotations

import json
import unicodedata
from urllib.parse import quote, quote_plus

import pytest

from core.doctor.anonymise import Redactor

ANNA = Redactor(["Anna"], [r"C:\Users\Anna"], ["DESKTOP-4TUB5H"])


@pytest.mark.parametrize(
    "path",
    [
        r"C:\Users\Anna\runs\x",
        r"c:\users\ANNA\runs\x",
        "C:/Users/Anna/runs/x",
        r"C:\\Users\\Anna\\runs\\x",
        r"C:\\\\Users\\\\Anna\\\\runs",
        "file:///C:/Users/Anna/runs",
        "file:///C%3A/Users/Anna/runs",
        "C%3A%5CUsers%5CAnna%5Cruns",
        "/c/Users/Anna/runs",
        "/mnt/c/Users/Anna/runs",
        r"\\?\C:\Users\Anna\runs",
        r"\\server\Users\Anna\runs",
        r"D:\Users\Anna.backup\runs",
        "/home/anna/x",
        r"first line\nC:\\Users\\Anna\\x",
        "x=C:/Users/Anna;y",
        "['C:\\\\Users\\\\Anna']",
        "%2Fhome%2Fanna%2Fx",
    ],
)
def test_a_home_in_every_form(path: str) -> None:
    assert "anna" not in ANNA.redact(f"text {path} text").lower()


@pytest.mark.parametrize(
    "name", ["Jörg Müller", "Ünal Şahin", "李 小龙", "O'Brien", "a+b (x) [y]", "x.y", "user", "home"]
)
@pytest.mark.parametrize("root", ["/home", "/Users", r"C:\Users", "/data/people"])
def test_names_with_blanks_and_umlauts(name: str, root: str) -> None:
    separator = "\\" if "\\" in root else "/"
    home = f"{root}{separator}{name}"
    redactor = Redactor([name], [home], [])
    path = f"{home}{separator}runs{separator}one"
    forms = [
        path,
        path.upper(),
        path.lower(),
        path.replace("\\", "/"),
        json.dumps(path),
        json.dumps(path, ensure_ascii=False),
        json.dumps(json.dumps(path)),
        quote(path),
        quote(path, safe=""),
        quote_plus(path),
        quote(path.encode("latin-1", "ignore")) if name.isascii() else quote(path),
        unicodedata.normalize("NFD", path),
        repr(path),
        ascii(path),
        repr(path.encode()),
    ]
    for form in forms:
        redacted = redactor.redact(f"see {form}")
        assert redacted.startswith("see ") and "<home>" in redacted, (form, redacted)
        kept = redacted.replace("<home>", "").replace("<user>", "")
        assert all(part.lower() not in kept.lower() for part in name.split() if len(part) > 3), (form, redacted)
    if len(name) > 2:
        assert redactor.redact(f"owner: {name}!") == "owner: <user>!"


def test_a_user_named_a() -> None:
    redactor = Redactor(["a"], ["/home/a"], ["b"])
    text = "a run of a model at /home/a/runs: alpha, a = 3, b, beta"
    assert redactor.redact(text) == "a run of a model at <home>/runs: alpha, a = 3, b, beta"
    assert (
        redactor.redact("a@b:~$ ls; scp a@host: /mnt/a/x") == "<user>@<machine>:~$ ls; scp <user>@host: /mnt/<user>/x"
    )
    assert (
        redactor.redact('{"user": "a", "host": "b", "alpha": 1}')
        == '{"user": "<user>", "host": "<machine>", "alpha": 1}'
    )
    assert redactor.redact("/home/abc/x /home/a") == "/home/<user>/x <home>"


def test_a_host_name_that_is_part_of_a_word() -> None:
    redactor = Redactor(["ann"], [], ["train"])
    assert redactor.redact("training on train, constrained; anneal by ann") == (
        "training on <machine>, constrained; anneal by <user>"
    )
    assert redactor.redact("TRAIN.local train-gpu0 ann_run") == "<machine>.local <machine>-gpu0 <user>_run"


def test_what_is_put_in_is_not_searched_again() -> None:
    assert Redactor(["machine"], ["/home/machine"], ["user"]).redact("/home/machine on user") == "<home> on <machine>"


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("192.168.178.20:29500", "<address>:29500"),
        ("127.0.0.1:29500 0.0.0.0", "127.0.0.1:29500 0.0.0.0"),
        ("fe80::1ff:fe23:4567:890a%eth0", "<address>%eth0"),
        ("[2001:db8::8a2e:370:7334]:80", "[<address>]:80"),
        ("::1 at 12:34:56", "::1 at 12:34:56"),
        ("mac 00:1A:2B:3C:4D:5E and 00-1a-2b-3c-4d-5e and 001a.2b3c.4d5e", "mac <address> and <address> and <address>"),
        ("torch 2.13.0+cu130, driver 32.0.15.6094", "torch 2.13.0+cu130, driver 32.0.15.6094"),
        ("HF_TOKEN=hf_abcdefghijklmnopqrstuvwx", "HF_TOKEN=<secret>"),
        ("see hf_abcdefghijklmnopqrstuvwx.", "see <secret>."),
        ('WANDB_API_KEY = "0123 abc"', 'WANDB_API_KEY = "<secret>"'),
        (r'{"password": "a\\b\"c"}', '{"password": "<secret>"}'),
        (r'"{\"token\": \"abc\"}"', r'"{\"token\": \"<secret>\"}"'),
        ("Authorization: Bearer abc.def", "Authorization: Bearer <secret>"),
        ("https://bob:pw@example.com/x", "https://<secret>@example.com/x"),
        ("mail an.na@example.com", "mail <e-mail>"),
        ('"tokens_per_s": 1.5e3, "tokens_seen": 4', '"tokens_per_s": 1.5e3, "tokens_seen": 4'),
        ('tokenizer = "gpt2"', 'tokenizer = "gpt2"'),
    ],
)
def test_addresses_and_tokens(text: str, redacted: str) -> None:
    assert ANNA.redact(text) == redacted


def test_other_peoples_homes_are_found_too() -> None:
    assert ANNA.redact(r"C:\Users\Jo Doe\x C:\Users\Public\y") == r"C:\Users\<user>\x C:\Users\Public\y"
    assert ANNA.redact("in /home/jo and /home/bob/x") == "in /home/<user> and /home/<user>/x"


@pytest.mark.parametrize("piece", ["a", "a:", "a.b-", "C:\\", "token", "1.", "://a:", "home/", "\\u00", "Anna"])
def test_no_text_takes_long(piece: str) -> None:
    """A minute's limit of the test: each pattern looks a bounded way ahead."""
    ANNA.redact(piece * 50_000)


def test_gpus_keep_their_numbers() -> None:
    one, two = "GPU-12345678-1234-1234-1234-123456789012", "GPU-87654321-1234-1234-1234-123456789012"
    redactor = Redactor()
    assert redactor.redact(f"{one} {two} {one}") == "GPU-<0> GPU-<1> GPU-<0>"
    assert redactor.redact(two.upper()) == "GPU-<1>"


def test_values_of_secret_variables_are_found_anywhere() -> None:
    redactor = Redactor(secrets=["s3cr=t/va+lue"])
    assert redactor.redact("x s3cr=t/va+lue y s3cr%3Dt%2Fva%2Blue") == "x <secret> y <secret>"


def test_json_stays_json() -> None:
    value = {"path": r"C:\Users\Anna\runs", "token": 'x"y', "host": "DESKTOP-4TUB5H", "n": 3}
    found = json.loads(ANNA.redact(json.dumps(value)))
    assert found == {"path": r"<home>\runs", "token": "<secret>", "host": "<machine>", "n": 3}


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
    shown = Redactor().redact(f"before\n{text}\n")
    assert "s3cr3t" not in shown and shown.startswith("before\n")


NO_SECRETS = (
    *("--tokens byte", "--max-tokens 500", "tokens_per_s: 500", "--tokenizer gpt2", "rankdeck train -p 8080"),
    *("ssh -p 22 box", "token 5 of 9", "--seed 1", "author: 5", "--author-notes x", "mkdir -p runs/a"),
    *("step 5 loss 2", "checkpoints/2/weights.safetensors"),
    "-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0\n-----END CERTIFICATE-----",
)


@pytest.mark.parametrize("text", NO_SECRETS)
def test_what_is_no_secret_stays(text: str) -> None:
    assert Redactor().redact(text) == text
