"""Gives a process that is to see the second GPU of `pynvml`, beside this file, the real one. Python runs this itself.

NCCL refuses two ranks on one card of one machine. `NCCL_HOSTID` makes it take them for ranks on two machines, which
exchange tensors over a socket.
"""

import os

_TWIN = "GPU-twin-"
_card = os.environ.get("CUDA_VISIBLE_DEVICES", "")
if _card.startswith("GPU-"):
    os.environ["NCCL_HOSTID"] = _card
    os.environ["CUDA_VISIBLE_DEVICES"] = _card.replace(_TWIN, "GPU-")
