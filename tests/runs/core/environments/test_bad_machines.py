"""Environments on machines where something is wrong: the clock, the network, a wheel, the disk, a file in use."""

from __future__ import annotations

import os
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from core.environments import make as module
from core.environments.downloads import DownloadError, copy_local, download
from core.environments.make import Progress, make
from core.environments.pip_report import Wheel
from core.environments.plan import Wanted
from core.environments.programs import LOG, PipFailedError, pip_of, run_pip
from core.environments.record import read_environment
from core.errors import RankdeckError
from core.machine.torch_builds import TorchSource
from tests.helpers.small_drive import small_drive
from tests.helpers.small_wheels import TORCH, make_wheel

pytestmark = [pytest.mark.timeout(240), pytest.mark.slow]
NAME = "torch-2.13.0-py3-none-any.whl"
# A key for these tests alone, and its certificates for 127.0.0.1, which no system trusts.
KEY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgTYfc3SMUMt43xSsf
NyapzaK0PnK1+XDQG0+mUk2/366hRANCAAQD2HCZ4Va7txC4NVWBjyM9JiwCvyWJ
bFcoJSJ+otliWHLXGRqYb2qX1WhM8X4dt9YK4nSzgc4TG95YjjDQFwcN
-----END PRIVATE KEY-----
"""
# Valid in 2016: so a certificate looks to a clock that is ahead.
EXPIRED = """\
-----BEGIN CERTIFICATE-----
MIIBWjCCAQCgAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAkxMjcuMC4w
LjEwHhcNMTYwMTAxMDAwMDAwWhcNMTcwMTAxMDAwMDAwWjAUMRIwEAYDVQQDDAkx
MjcuMC4wLjEwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQD2HCZ4Va7txC4NVWB
jyM9JiwCvyWJbFcoJSJ+otliWHLXGRqYb2qX1WhM8X4dt9YK4nSzgc4TG95YjjDQ
FwcNo0MwQTAPBgNVHRMBAf8EBTADAQH/MA8GA1UdEQQIMAaHBH8AAAEwHQYDVR0O
BBYEFNgtCa4TPPZkw84T0K1Yf3WlMJwvMAoGCCqGSM49BAMCA0gAMEUCIACc+/F2
mWXlwyzNuF5RvaO/3rTu3FmjCl58vzjVKenAAiEAlXizo5GIpCmzoPxhBhDTLAHU
yUdgFM/IZWO5AW95mRU=
-----END CERTIFICATE-----
"""
# Valid from 2090 on: so it looks to a clock that is behind.
NOT_YET = """\
-----BEGIN CERTIFICATE-----
MIIBXTCCAQSgAwIBAgIBAjAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAkxMjcuMC4w
LjEwIhgPMjA5MDAxMDEwMDAwMDBaGA8yMDk5MDEwMTAwMDAwMFowFDESMBAGA1UE
AwwJMTI3LjAuMC4xMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEA9hwmeFWu7cQ
uDVVgY8jPSYsAr8liWxXKCUifqLZYlhy1xkamG9ql9VoTPF+HbfWCuJ0s4HOExve
WI4w0BcHDaNDMEEwDwYDVR0TAQH/BAUwAwEB/zAPBgNVHREECDAGhwR/AAABMB0G
A1UdDgQWBBTYLQmuEzz2ZMPOE9CtWH91pTCcLzAKBggqhkjOPQQDAgNHADBEAiBU
gJZcTSxS58qKKTD1HB2Dn5FjDawxYVXO4CM3edW27AIgN077pxfgUAU42dg2F6Wv
0qZprNJ4nhRLfrAkh0KzpOg=
-----END CERTIFICATE-----
"""


class _Quiet(HTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """The client ends the handshake: that is what is tested."""


@contextmanager
def tls_server(folder: Path, certificate: str) -> Iterator[tuple[str, Path]]:
    """A server on 127.0.0.1; gives its address and the file with which a client trusts it."""
    both = folder / "server.pem"
    both.write_text(KEY + certificate, encoding="ascii")
    trusted = folder / "trusted.pem"
    trusted.write_text(certificate, encoding="ascii")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    server = _Quiet(("127.0.0.1", 0), BaseHTTPRequestHandler)
    # The handshake is made by the first read, in the server's thread and under its handling of errors.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=partial(server.serve_forever, poll_interval=0.02))
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_address[1]}", trusted
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def never() -> bool:
    return False


@pytest.fixture(autouse=True)
def _plain_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    unwanted = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR")
    for name in [name for name in os.environ if name.startswith("PIP_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    for name in unwanted:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)


@pytest.fixture
def pip() -> tuple[str, ...]:
    return pip_of(Path(sys.executable))


@pytest.fixture
def wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wanted:
    monkeypatch.setattr(module, "CHECK", ("-c", "import json, torch; print(json.dumps({'torch': torch.__version__}))"))
    wheels = tmp_path / "my wheels"
    wheels.mkdir()
    make_wheel(wheels, "torch", "2.13.0", TORCH)
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("torch==2.13.0\n", encoding="utf-8")
    torch = (TorchSource("torch==2.13.0", None, "torch 2.13.0"),)
    return Wanted(tmp_path / "environments" / "mine", torch, ("torch>=2.7",), (), wheels, constraints)


@pytest.mark.windows
@pytest.mark.parametrize("certificate", [EXPIRED, NOT_YET], ids=["clock ahead", "clock behind"])
def test_a_clock_that_is_years_off_is_named(
    certificate: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pip: tuple[str, ...]
) -> None:
    with tls_server(tmp_path, certificate) as (address, trusted):
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        wheel = Wheel("torch", "2.13.0", f"{address}/{NAME}", "ab" * 32)
        with pytest.raises(DownloadError, match=r"The certificate of 127\.0\.0\.1 is not valid on 20") as failed:
            download(wheel, tmp_path / "there", lambda _: None, never)
        assert failed.value.next_step == "Set the clock of this PC, then try again."
        monkeypatch.setenv("PIP_CERT", str(trusted))
        if sys.platform == "win32":  # by OpenSSL: Windows' own check takes no certificate but its own
            monkeypatch.setenv("PIP_USE_DEPRECATED", "legacy-certs")
        command = ["install", "--dry-run", "--index-url", f"{address}/simple", "absent-package"]
        with pytest.raises(
            PipFailedError, match="The certificate of the package index is not valid on 20"
        ) as failed_pip:
            run_pip(pip, tmp_path, command, never)
        assert failed_pip.value.next_step.startswith("Set the clock of this PC")


@pytest.mark.windows
def test_without_a_network_it_is_said(tmp_path: Path, pip: tuple[str, ...]) -> None:
    command = ["install", "--dry-run", "--index-url", "http://127.0.0.1:1/simple", "absent-package"]
    with pytest.raises(PipFailedError, match="The package index could not be reached") as failed:
        run_pip(pip, tmp_path, command, never)
    assert "Check the network" in failed.value.next_step and str(tmp_path / LOG) in failed.value.next_step


@pytest.mark.windows
@pytest.mark.parametrize("damage", ["cut short", "no wheel"])
def test_a_damaged_wheel_is_named_before_anything_is_installed(damage: str, wanted: Wanted) -> None:
    assert wanted.wheels is not None
    path = wanted.wheels / NAME
    path.write_bytes(path.read_bytes()[:-40] if damage == "cut short" else b"<html>Please sign in</html>")
    with pytest.raises(RankdeckError, match=r"file is damaged.*torch") as failed:
        make(wanted, lambda _: None, never)
    assert "copy that file there again" in failed.value.next_step


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[Path]:
    with small_drive(tmp_path / "small drive", 96) as folder:
        yield folder


def test_a_disk_that_fills_up_in_the_middle_is_said_and_the_rest_completed_later(
    wanted: Wanted, drive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RESERVE", 0)
    assert wanted.wheels is not None
    make_wheel(wanted.wheels, "torch", "2.13.0", TORCH, ballast=4 << 20)
    wanted = replace(wanted, folder=drive / "environments" / "mine")
    ballast = drive / "another program's file"

    def fill(progress: Progress) -> None:
        if progress.doing.startswith("Installing"):
            with ballast.open("wb") as file, pytest.raises(OSError, match="space"):
                while True:
                    file.write(bytes(1 << 16))
                    file.flush()

    with pytest.raises(RankdeckError, match=r"disk is full|No space left") as failed:
        make(wanted, fill, never)
    assert "Free some space" in failed.value.next_step
    environment = read_environment(wanted.folder)
    assert environment is not None and environment.record.state == "making", "never taken for a whole one"
    ballast.unlink()
    assert make(wanted, lambda _: None, never).record.state == "ready"


@pytest.mark.windows
def test_a_file_that_another_program_holds_is_waited_for(tmp_path: Path) -> None:
    """On Windows a file that is open cannot be replaced; a virus scanner closes it after a moment."""
    source = make_wheel(tmp_path, "torch", "2.13.0", TORCH)
    target = tmp_path / "there" / source.name
    target.parent.mkdir()
    target.write_bytes(b"older")
    opened = threading.Event()

    def scan() -> None:
        with target.open("rb"):
            opened.set()
            time.sleep(0.5)

    scanner = threading.Thread(target=scan)
    scanner.start()
    opened.wait()
    assert copy_local(source, target.parent).read_bytes() == source.read_bytes()
    scanner.join()
