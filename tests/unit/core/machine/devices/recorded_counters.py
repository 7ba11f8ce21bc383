"""GPU counters of Windows as PDH gives them: names as Microsoft documents them, the machine is made up.

Two cards: 0x0000D2A1 trains (ranks 4711 and, in a launcher's child, 4812), 0x0000F00D drives the screen.
"""

from __future__ import annotations

from typing import Final

from core.machine.devices.gpu_counters import DEDICATED, SHARED, Readings

TRAINS: Final = "0x00000000_0x0000d2a1"
SCREEN: Final = "0x00000000_0x0000f00d"
GIB: Final = 1 << 30

RECORDED: Final[Readings] = {
    DEDICATED: {
        "pid_4711_luid_0x00000000_0x0000D2A1_phys_0": 10.5 * GIB,
        "pid_4711_luid_0x00000000_0x0000F00D_phys_0": 4.0 * (1 << 20),
        "pid_4812_luid_0x00000000_0x0000F00D_phys_0": 7.25 * GIB,
        "pid_1400_luid_0x00000000_0x0000F00D_phys_0": 0.6 * GIB,
        "pid_4_luid_0x00000000_0x0000F00D_phys_0": 0.0,
        "_Total": 3.0,
    },
    SHARED: {
        "pid_4711_luid_0x00000000_0x0000D2A1_phys_0": 3.0 * GIB,
        "pid_4711_luid_0x00000000_0x0000F00D_phys_0": 0.0,
        "pid_4812_luid_0x00000000_0x0000F00D_phys_0": 0.1 * GIB,
        "pid_1400_luid_0x00000000_0x0000F00D_phys_0": 0.05 * GIB,
    },
}
