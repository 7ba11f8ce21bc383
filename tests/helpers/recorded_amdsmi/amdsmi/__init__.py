"""Stands in for AMD's `amdsmi`: answers its calls from a file of recorded answers (`RECORDED_AMDSMI`).

Names, arguments and exceptions are those of `amdsmi_interface.py` and `amdsmi_exception.py` of amdsmi 7.0.2 (ROCm 7.0).
The file is read at each call, so that a test can change what a card answers. An answer `{"error": CODE}` raises as the
library would.
"""

import json
import os
import pathlib
import time


class AmdSmiException(Exception):
    pass


class AmdSmiLibraryException(AmdSmiException):
    def __init__(self, err_code):
        super().__init__(err_code)
        self.err_code = err_code
        names = {
            2: "AMDSMI_STATUS_NOT_SUPPORTED - Feature not supported",
            31: "AMDSMI_STATUS_NOT_FOUND - Device Not found",
        }
        self.err_info = names.get(err_code, "AMDSMI_STATUS_UNKNOWN_ERROR - An unknown error occurred")


def _recorded():
    return json.loads(pathlib.Path(os.environ["RECORDED_AMDSMI"]).read_text(encoding="utf-8"))


def _given(answer):
    if isinstance(answer, dict) and "error" in answer:
        raise AmdSmiLibraryException(answer["error"])
    if isinstance(answer, dict) and "hangs_s" in answer:
        time.sleep(answer["hangs_s"])
    return answer


def amdsmi_init(_flag=None):
    _given(_recorded().get("init"))


def amdsmi_get_processor_handles():
    return list(range(len(_recorded()["gpus"])))


def __getattr__(name):
    if not name.startswith("amdsmi_get_"):
        raise AttributeError(name)

    def asked(handle):
        gpus = _recorded()["gpus"]
        if handle >= len(gpus):
            raise AmdSmiLibraryException(31)
        return _given(gpus[handle].get(name, {"error": 2}))

    asked.__name__ = name
    return asked
