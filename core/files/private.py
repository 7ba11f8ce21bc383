"""Private files: permission bits on POSIX, an access list on Windows."""

from __future__ import annotations

import sys
from pathlib import Path

if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    _TOKEN_QUERY = 0x0008
    _TOKEN_USER = 1
    _SDDL_REVISION_1 = 1
    _DACL_SECURITY_INFORMATION = 0x4
    _PROTECTED_DACL_SECURITY_INFORMATION = 0x80000000

    def make_private(path: Path) -> None:
        """Leave only this user (and the system itself) access to `path`.

        Raises:
            OSError: The drive's file system knows no access lists (FAT, some network drives).
        """
        sddl = f"D:P(A;;FA;;;{_user_sid()})(A;;FA;;;SY)"
        advapi32 = ctypes.WinDLL("advapi32", use_last_error=True)
        descriptor = ctypes.c_void_p()
        if not advapi32.ConvertStringSecurityDescriptorToSecurityDescriptorW(
            ctypes.c_wchar_p(sddl), wintypes.DWORD(_SDDL_REVISION_1), ctypes.byref(descriptor), None
        ):
            raise ctypes.WinError(ctypes.get_last_error())
        try:
            what = wintypes.DWORD(_DACL_SECURITY_INFORMATION | _PROTECTED_DACL_SECURITY_INFORMATION)
            if not advapi32.SetFileSecurityW(ctypes.c_wchar_p(str(path)), what, descriptor):
                raise ctypes.WinError(ctypes.get_last_error())
        finally:
            _free(descriptor)

    def _user_sid() -> str:
        """The security identifier of this process's user ("S-1-5-21-…")."""
        advapi32 = ctypes.WinDLL("advapi32", use_last_error=True)
        kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
        kernel32.GetCurrentProcess.restype = wintypes.HANDLE
        token = wintypes.HANDLE()
        process = wintypes.HANDLE(kernel32.GetCurrentProcess())
        if not advapi32.OpenProcessToken(process, wintypes.DWORD(_TOKEN_QUERY), ctypes.byref(token)):
            raise ctypes.WinError(ctypes.get_last_error())
        try:
            buffer = ctypes.create_string_buffer(256)
            size = wintypes.DWORD()
            if not advapi32.GetTokenInformation(
                token, _TOKEN_USER, buffer, wintypes.DWORD(len(buffer)), ctypes.byref(size)
            ):
                raise ctypes.WinError(ctypes.get_last_error())
            sid = ctypes.cast(buffer, ctypes.POINTER(ctypes.c_void_p))[0]  # TOKEN_USER starts with the SID's address
            text = ctypes.c_wchar_p()
            if not advapi32.ConvertSidToStringSidW(ctypes.c_void_p(sid), ctypes.byref(text)):
                raise ctypes.WinError(ctypes.get_last_error())
            sid_text = text.value or ""
            _free(ctypes.cast(text, ctypes.c_void_p))
            return sid_text
        finally:
            kernel32.CloseHandle(token)

    def _free(memory: ctypes.c_void_p) -> None:
        kernel32 = ctypes.WinDLL("kernel32")
        kernel32.LocalFree.argtypes = [ctypes.c_void_p]
        kernel32.LocalFree(memory)

else:

    def make_private(path: Path) -> None:
        """Leave only this user access to `path`; raises `OSError`."""
        path.chmod(path.stat().st_mode & 0o700)
