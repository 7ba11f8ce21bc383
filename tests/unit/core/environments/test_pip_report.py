"""pip's report: the wheels in it, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.environments.pip_report import ReportError, Wheel, parse_report

pytestmark = pytest.mark.windows
SHA = "ab" * 32


def item(url: str = "https://index/numpy-2.4.6-cp311-cp311-win_amd64.whl", **other: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "numpy", "version": "2.4.6"},
        "download_info": {"url": url, "archive_info": {"hashes": {"sha256": SHA}}},
        **other,
    }


def report(*items: dict[str, Any]) -> str:
    return json.dumps({"version": "1", "install": items})


def test_each_wheel_is_named_with_its_hash_and_its_place() -> None:
    plain, local = parse_report(
        report(item(), item("file:///C:/my%20wheels/torch-2.13.0%2Bcpu-cp311-cp311-win_amd64.whl"))
    )
    assert plain == Wheel("numpy", "2.4.6", "https://index/numpy-2.4.6-cp311-cp311-win_amd64.whl", SHA)
    assert plain.file_name == "numpy-2.4.6-cp311-cp311-win_amd64.whl"
    assert local.file_name == "torch-2.13.0+cpu-cp311-cp311-win_amd64.whl"
    assert parse_report(report()) == ()


def test_a_hash_may_be_written_as_older_versions_of_pip_do() -> None:
    url = "https://index/numpy-2.4.6-cp311-cp311-win_amd64.whl"
    (wheel,) = parse_report(report(item(download_info={"url": url, "archive_info": {"hash": f"sha256={SHA}"}})))
    assert wheel.sha256 == SHA
    with pytest.raises(ReportError, match="no SHA-256"):
        parse_report(report(item(download_info={"url": url, "archive_info": {"hash": "md5=1"}})))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        report({"metadata": {}}),
        report(item("ftp://index/a.whl")),
        report(item("https://index/a.tar.gz")),
        report(item("https://index/..%5Ca.whl")),
        report(item(download_info={"url": "https://index/a.whl", "archive_info": {"hashes": {"md5": "1"}}})),
        report(item(download_info={"url": "https://index/a.whl", "archive_info": {"hashes": {"sha256": "short"}}})),
        report(item(download_info={"url": "https://index/a.git", "vcs_info": {}})),
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ReportError, match="could not be read"):
        parse_report(text)
