"""The device, its driver, and the package of Paddle."""

from __future__ import annotations

import platform
import subprocess

import numpy as np
import paddle

from ernie_gram.distributed.device import check_device, gpu_number, visible_gpus
from ernie_gram.distributed.measure import allocated_peak
from ernie_gram.distributed.processor import processor_name, read_cpuinfo
from ernie_gram.distributed.world import start_world
from ernie_gram.gpu_checks.check import Setup, require

NUMBERS = 1 << 20


def device(setup: Setup) -> str:
    """Find the GPU, and let it add up numbers."""
    check_device("gpu")
    cuda, number = paddle.device.cuda, gpu_number()
    properties = cuda.get_device_properties(number)
    major, minor = cuda.get_device_capability(number)
    found = {
        "name": cuda.get_device_name(number),
        "capability": f"{major}.{minor}",
        "memory": int(properties.total_memory),
        "multiprocessors": int(properties.multi_processor_count),
        "gpus": visible_gpus(),
        "driver": _driver(),
        "paddle": paddle.version.full_version,
        "paddle_commit": paddle.version.commit,
        "cuda": str(paddle.version.cuda()),
        "cudnn": str(paddle.version.cudnn()),
        "nccl": str(paddle.version.nccl()),
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": processor_name(read_cpuinfo()),
    }
    setup.numbers.update(found)
    world = start_world("gpu")
    program = paddle.static.Program()
    with paddle.static.program_guard(program, paddle.static.Program()):
        total = paddle.ones([NUMBERS]).sum()
    summed = paddle.static.Executor(world.place).run(program, fetch_list=[total])[0]
    require(np.array_equal(summed, np.float32(NUMBERS)), f"the sum of {NUMBERS} ones is {summed}")
    allocated = allocated_peak(world)
    require(allocated >= 4 * NUMBERS, f"Paddle has allocated only {allocated} bytes on {world.place}")
    return (
        f"{found['gpus']} x {found['name']}, capability {found['capability']}, {found['memory'] / 2**30:.0f} GiB, "
        f"driver {found['driver']}, Paddle {found['paddle']} for CUDA {found['cuda']}"
    )


def _driver() -> str:
    """Return the version of NVIDIA's driver, or "unknown"."""
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    return (done.stdout.split() or ["unknown"])[0]
