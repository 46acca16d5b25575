"""Entries in Paddle's list of kernels, so that programs can be built of operations that this device has no kernel for.

Paddle builds an operation only if the list has a kernel for its dtype, on any device. An entry cannot be run: another
operation must take its place when the program is finished.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from pathlib import Path

# Paddle's C interface for plug-ins: the numbers of its dtypes, and "any layout".
FLOAT16, FLOAT32, BFLOAT16 = 10, 11, 13
_ANY_LAYOUT = 0

_ARGUMENTS = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


@_ARGUMENTS
def _no_arguments(key: int, kernel: int) -> None:
    """Describe the arguments of an entry: nothing."""


@_KERNEL
def _cannot_run(context: int) -> None:
    raise RuntimeError("this kernel is only entered into the list, so that programs can be built")


def enter(device: str, names: Iterable[str], dtypes: Iterable[int]) -> None:
    """Enter kernels for a device, "CPU" or "GPU"; raises OSError or AttributeError if this Paddle cannot.

    This is bound to Paddle 3.3, whose interface it calls.
    """
    import paddle

    library = ctypes.CDLL(str(Path(paddle.__file__).parent / "libs" / "libphi_core.so"))
    nothing, none = ctypes.c_size_t(0), (ctypes.c_int * 1)()
    dtypes = list(dtypes)
    for name in names:
        for dtype in dtypes:
            library.PD_RegisterPhiKernel(
                *(name.encode(), device.encode(), dtype, _ANY_LAYOUT, nothing, none, nothing, none, nothing, none),
                *(_no_arguments, _cannot_run, None),
            )
