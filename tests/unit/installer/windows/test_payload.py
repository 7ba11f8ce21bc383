"""The folder that the installer brings: unpacked whole, within its folder, with the same name for the same bytes."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from installer.windows.inputs import BuildError
from installer.windows.payload import install_wheels, is_left_out, payload_files, payload_id, unpack_python

FILES = {
    "python.exe": b"program",
    "pythonw.exe": b"program without a console",
    "Lib/os.py": b"import sys\n",
    "Lib/test/test_os.py": b"tests\n",
}
LEFT_OUT = ("Lib/test/*",)


def make_tar(path: Path, files: dict[str, bytes], root: str = "python") -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"{root}/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def make_zip(path: Path, files: dict[str, bytes], root: str = "") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(root + name, content)
    return path


def unpacked(source: Path, target: Path) -> dict[str, bytes]:
    unpack_python(source, target, LEFT_OUT)
    return {str(path): (target / path).read_bytes() for path in payload_files(target)}


def test_a_runtime_is_the_same_from_a_tar_a_zip_and_a_folder(tmp_path: Path) -> None:
    expected = {name: content for name, content in FILES.items() if not name.startswith("Lib/test")}
    assert unpacked(make_tar(tmp_path / "a.tar.gz", FILES), tmp_path / "a") == expected
    assert unpacked(make_zip(tmp_path / "b.zip", FILES, "tools/"), tmp_path / "b") == expected
    assert unpacked(tmp_path / "a", tmp_path / "c") == expected
    assert payload_id(tmp_path / "a") == payload_id(tmp_path / "b") == payload_id(tmp_path / "c")


def test_what_lies_beside_the_runtime_in_an_archive_is_not_taken(tmp_path: Path) -> None:
    source = make_zip(tmp_path / "a.zip", {"python/pythonw.exe": b"", "rankdeck.nuspec": b"", "package/x": b""})
    assert list(unpacked(source, tmp_path / "a")) == ["pythonw.exe"]


def test_other_files_are_refused(tmp_path: Path) -> None:
    text = tmp_path / "python.txt"
    text.write_text("no archive", encoding="utf-8")
    with pytest.raises(BuildError, match="neither a folder, a tar nor a zip"):
        unpack_python(text, tmp_path / "a", ())
    with pytest.raises(BuildError, match=r"no pythonw\.exe"):
        unpack_python(make_zip(tmp_path / "b.zip", {"python/python.exe": b""}), tmp_path / "b", ())


@pytest.mark.parametrize("name", ["../evil.txt", "a/../../evil.txt", "/evil.txt"])
def test_nothing_is_written_outside_of_the_folder(name: str, tmp_path: Path) -> None:
    wheel = make_zip(tmp_path / "evil-1-py3-none-any.whl", {name: b"evil"})
    with pytest.raises(BuildError, match="leads out of its folder"):
        install_wheels([wheel], tmp_path / "deep" / "python", ())
    assert not list(tmp_path.rglob("evil.txt"))


def test_wheels_become_packages(tmp_path: Path) -> None:
    one = make_zip(tmp_path / "one-1-py3-none-any.whl", {"one/__init__.py": b"1", "one/tests/t.py": b""})
    two = make_zip(tmp_path / "two-1-py3-none-any.whl", {"two.py": b"2"})
    install_wheels([two, one], tmp_path / "python", ("one/tests/*",))
    found = [str(path) for path in payload_files(tmp_path / "python")]
    assert found == ["Lib/site-packages/one/__init__.py", "Lib/site-packages/two.py"]


def test_a_wheel_with_files_for_other_places_is_refused(tmp_path: Path) -> None:
    wheel = make_zip(tmp_path / "odd-1-py3-none-any.whl", {"odd-1.data/scripts/odd.exe": b""})
    with pytest.raises(BuildError, match=r"holds odd-1\.data/scripts/odd\.exe"):
        install_wheels([wheel], tmp_path / "python", ())


def test_another_byte_or_another_name_is_another_payload(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_bytes(b"1")
    first = payload_id(tmp_path / "a")
    (tmp_path / "a" / "x").write_bytes(b"2")
    second = payload_id(tmp_path / "a")
    (tmp_path / "a" / "x").rename(tmp_path / "a" / "y")
    assert len({first, second, payload_id(tmp_path / "a")}) == 3


def test_patterns_match_whole_paths() -> None:
    assert is_left_out(PurePosixPath("Lib/test/data/x.py"), LEFT_OUT)
    assert not is_left_out(PurePosixPath("Lib/tests.py"), LEFT_OUT)
    assert not is_left_out(PurePosixPath("lib/TEST/x.py"), LEFT_OUT)
