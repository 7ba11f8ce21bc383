"""pip's variables and sources."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.environments.pip_environment import (
    CERTIFICATE_VARIABLES,
    certificate_fault,
    clean,
    proxy_text,
    source_options,
    variable_faults,
    wheels_folder,
    without_python_home,
)


def test_nothing_leads_a_new_python_astray() -> None:
    found = clean({"PythonHome": "x", "PYTHONPATH": "x", "PIP_TARGET": "x", "PIP_INDEX_URL": "kept", "Path": "kept"})
    assert found == {"PIP_INDEX_URL": "kept", "Path": "kept"}
    assert without_python_home({"PYTHONHOME": "x", "PYTHONPATH": "kept"}) == {"PYTHONPATH": "kept"}


def test_a_folder_of_wheels_is_the_only_source() -> None:
    assert source_options(Path("w"), "https://index") == ["--no-index", "--find-links", "w"]
    assert source_options(None, "https://index") == ["--index-url", "https://index"]
    assert source_options(None, None) == []
    assert wheels_folder({}) is wheels_folder({"RANKDECK_WHEELS": " "}) is None
    found = wheels_folder({"RANKDECK_WHEELS": "w"})
    assert found is not None and found.is_absolute() and found.name == "w"


def test_a_certificate_that_is_out_of_date_says_the_clock() -> None:
    fault = certificate_fault("files.example.org", "certificate is not yet valid", 1_480_000_000.0)
    assert fault.cause.startswith("The certificate of files.example.org is not valid on 2016-11-2")
    assert fault.next_step == "Set the clock of this PC, then try again."
    other = certificate_fault("files.example.org", "self-signed certificate in certificate chain")
    assert "SSL_CERT_FILE" in other.next_step and "clock" in other.next_step


@pytest.mark.parametrize("name", CERTIFICATE_VARIABLES)
def test_a_variable_that_names_an_absent_file_is_named(name: str, tmp_path: Path) -> None:
    (fault,) = variable_faults({name: str(tmp_path / "proxy.pem")})
    assert name in fault.cause and "proxy.pem" in fault.cause and name in fault.next_step
    (tmp_path / "proxy.pem").touch()
    assert variable_faults({name: str(tmp_path / "proxy.pem")}) == []
    assert variable_faults({name: " "}) == variable_faults({}) == []


def test_a_proxy_is_named_without_its_password() -> None:
    assert (
        proxy_text({"HTTPS_PROXY": "http://ada:secret@proxy.example:8080"})
        == "HTTPS_PROXY is set to proxy.example:8080."
    )
    assert proxy_text({"http_proxy": "proxy:3128"}) == "http_proxy is set to proxy:3128."
    assert proxy_text({}) == ""
