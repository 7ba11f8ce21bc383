"""The setup for Windows, compiled by NSIS: signed by the command that `--sign` names, or not made at all."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from installer.windows.build import make_installer
from installer.windows.inputs import BuildError

pytestmark = [
    pytest.mark.skipif(shutil.which("makensis") is None, reason="NSIS is not installed (makensis)"),
    pytest.mark.skipif(sys.platform == "win32", reason="the signing command is a shell's on Linux"),
]
NEEDS_SIGNER = pytest.mark.skipif(shutil.which("osslsigncode") is None, reason="osslsigncode is not installed")


def setup(folder: Path, sign: str | None) -> Path:
    payload, work = folder / "pay load", folder / "work"
    for path in (payload, work):
        path.mkdir(exist_ok=True)
    (payload / "rankdeck.ico").write_bytes(b"icon")
    return make_installer(
        payload, folder / "Rankdeck-Setup.exe", work, "0.1.0", "0.1.0-1", makensis="makensis", sign=sign, fast=True
    )


def openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


@NEEDS_SIGNER
def test_setup_and_uninstaller_are_signed(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    openssl(
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=Rankdeck tests", "-days", "2",
        "-addext", "extendedKeyUsage=codeSigning", "-keyout", str(key), "-out", str(certificate),
    )  # fmt: skip
    signed = tmp_path / "signed"
    signed.mkdir()
    script = tmp_path / "sign.sh"
    script.write_text(
        f'set -e\nosslsigncode sign -certs "{certificate}" -key "{key}" -in "$1" -out "$1.signed"\n'
        f'mv "$1.signed" "$1"\ncp "$1" "$(mktemp "{signed}/XXXXXX")"\n',
        encoding="utf-8",
    )
    made = setup(tmp_path, f'sh "{script}" "%1"')
    copies = sorted(signed.iterdir(), key=lambda path: path.stat().st_size)
    assert len(copies) == 2  # the uninstaller, which is a part of the setup, and the setup
    assert copies[1].read_bytes() == made.read_bytes()
    for path in copies:
        answer = subprocess.run(
            ["osslsigncode", "verify", "-CAfile", str(certificate), "-in", str(path)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert answer.returncode == 0, answer.stdout + answer.stderr
        assert "Signature verification: ok" in answer.stdout


def test_a_setup_that_cannot_be_signed_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="makensis ended with code"):
        setup(tmp_path, "sh -c 'echo the key is missing; exit 3' %1")
    assert not (tmp_path / "Rankdeck-Setup.exe").exists()
    assert setup(tmp_path, None).is_file()
