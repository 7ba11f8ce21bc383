"""Moving a tensor into shared memory, and addresses that lead nowhere."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="shares tensors")

from workers.all_reduce.shared_arena import ADDRESS_BYTES, ShareError, attach, refusal, share  # noqa: E402


@pytest.mark.windows
def test_every_view_follows_and_both_see_what_is_written() -> None:
    tensor = torch.arange(3000.0)
    view = tensor[1000:2000]
    address = share(view)
    assert len(address) < ADDRESS_BYTES and address.isascii()
    seen = attach(address, view)
    seen[0], view[1] = -1.0, -2.0
    assert tensor[998:1003].tolist() == [998.0, 999.0, -1.0, -2.0, 1002.0]
    assert seen[:3].tolist() == [-1.0, -2.0, 1002.0]
    assert share(tensor).split()[-1] == address.split()[-1]  # it is shared already
    if sys.platform == "linux":
        assert not list(Path("/dev/shm").glob(f"torch_{os.getpid()}_*"))


@pytest.mark.windows
def test_addresses_that_lead_nowhere() -> None:
    tensor = torch.zeros(1000)
    address = share(tensor)
    gone = address.replace(" ", "9 ", 1)
    for wrong in (gone, "", "a b c d", address.rsplit(" ", 1)[0]):
        with pytest.raises(ShareError):
            attach(wrong, tensor)
    with pytest.raises(ShareError, match="4000 bytes are shared, and not 8000"):
        attach(address, torch.zeros(2000))


@pytest.mark.skipif(sys.platform != "linux", reason="another file's number is a matter of /proc")
def test_another_file_under_the_same_number_is_not_taken(tmp_path: Path) -> None:
    tensor = torch.zeros(1000)
    _, _, inode, size = share(tensor).split()
    with (tmp_path / "other").open("wb+") as other:
        other.truncate(4000)
        with pytest.raises(ShareError, match="not the one that was said"):
            attach(f"{os.getpid()} {other.fileno()} {inode} {size}", tensor)


def test_more_than_there_is_room_for_is_refused() -> None:
    assert refusal(4096) is None
    if sys.platform == "linux":
        assert "are needed" in str(refusal(1 << 60))
