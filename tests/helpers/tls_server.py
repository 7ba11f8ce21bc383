"""A server with TLS whose certificate is out of date, as it looks from a PC whose clock is years off.

The key and its certificates are for these tests alone; they are for 127.0.0.1, and no system trusts them.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Final

KEY: Final = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgTYfc3SMUMt43xSsf
NyapzaK0PnK1+XDQG0+mUk2/366hRANCAAQD2HCZ4Va7txC4NVWBjyM9JiwCvyWJ
bFcoJSJ+otliWHLXGRqYb2qX1WhM8X4dt9YK4nSzgc4TG95YjjDQFwcN
-----END PRIVATE KEY-----
"""
# Valid in 2016: so a certificate looks to a clock that is ahead.
EXPIRED: Final = """\
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
NOT_YET: Final = """\
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
