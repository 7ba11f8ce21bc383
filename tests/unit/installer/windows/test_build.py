"""The list of files for NSIS: sorted, each in its folder, dollars escaped."""

from __future__ import annotations

from pathlib import Path

from installer.windows.build import SCRIPT, file_commands


def test_each_file_is_listed_once_below_its_folder(tmp_path: Path) -> None:
    for name in ("z.txt", "b/$x.py", "b/a.py", "b/c/d.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    partial = r"$INSTDIR\versions\${FOLDER}.partial"
    assert file_commands(tmp_path).splitlines() == [
        rf'SetOutPath "{partial}\b"',
        f'File "{Path(tmp_path, "b/$$x.py")}"',
        f'File "{Path(tmp_path, "b/a.py")}"',
        rf'SetOutPath "{partial}\b\c"',
        f'File "{Path(tmp_path, "b/c/d.py")}"',
        f'SetOutPath "{partial}"',
        f'File "{Path(tmp_path, "z.txt")}"',
    ]


def test_the_start_menu_s_entry_has_the_id_of_the_window_s_process() -> None:
    from app.outside.app_identity import APP_ID

    assert f'!define APP_ID "{APP_ID}"' in SCRIPT.read_text(encoding="utf-8")
