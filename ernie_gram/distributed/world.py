"""The processes of a job, and the device of this one.

`paddle.distributed.launch` starts several processes ("ranks"), each of which computes its share of every batch; without
it the world has one process. No other package reads the launcher's environment or chooses a device. Import this file
before Paddle: Paddle reads the number of threads, and its mathematical library reads MKL_DEBUG_CPU_TYPE, when it is
loaded. Paddle itself is imported only by `loading.load_paddle`.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ernie_gram.distributed.device import check_device, gpu_number, use_device
from ernie_gram.distributed.gloo import connect_first_group
from ernie_gram.distributed.loading import IS_VERBOSE, load_paddle, quiet
from ernie_gram.distributed.loading import PROCESSES_ON_THIS_MACHINE as PROCESSES_ON_THIS_MACHINE
from reader.system.parent_death import signal_at_parent_death
from reader.system.progress import hide_progress

if TYPE_CHECKING:
    import paddle

WORLD_SIZE = int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))
RANK = int(os.environ.get("PADDLE_TRAINER_ID", "0"))
# Set by our launcher: the file for this process's heartbeat (see run/heartbeat.py), and the launcher's process.
HEARTBEAT = os.environ.get("ERNIE_GRAM_HEARTBEAT")
_LAUNCHER = os.environ.get("ERNIE_GRAM_LAUNCHER")
MKL_SETTING = "MKL_DEBUG_CPU_TYPE"
_SKYLAKE_AVX512 = frozenset({"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"})
# GPU memory that an exported model reserves when it is loaded; more is allocated when needed.
_GPU_POOL_MB = 256


def processor_settings(cpuinfo: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables to set for a processor, given the text of /proc/cpuinfo; unset ones only.

    Paddle's package contains MKL of 2019, which takes its slowest path on AMD processors. MKL_DEBUG_CPU_TYPE selects
    another one: 7 is the path for AVX-512 (Intel's Skylake), 5 the path for AVX2. One thread of a Zen 5 reaches 175
    GFLOP/s in matrix products with 7, 100 with 5, and 30 without. On Intel processors MKL itself selects the fastest.
    """
    is_amd = re.search(r"^vendor_id\s*:\s*AuthenticAMD\s*$", cpuinfo, re.MULTILINE) is not None
    if not is_amd or MKL_SETTING in environment:
        return {}
    found = re.search(r"^flags\s*:(.*)$", cpuinfo, re.MULTILINE)
    flags = set(found[1].split()) if found else set()
    if flags >= _SKYLAKE_AVX512:
        return {MKL_SETTING: "7"}
    return {MKL_SETTING: "5"} if "avx2" in flags else {}


def processor_name(cpuinfo: str) -> str:
    """Return the model name of the processor in the text of /proc/cpuinfo, or "unknown processor"."""
    found = re.search(r"^model name\s*:\s*(.+?)\s*$", cpuinfo, re.MULTILINE)
    return found[1] if found else "unknown processor"


def read_cpuinfo() -> str:
    """Return the text of /proc/cpuinfo, or "" where there is none."""
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


os.environ.update(processor_settings(read_cpuinfo(), os.environ))
if RANK:
    hide_progress()
if "PADDLE_TRAINER_ID" in os.environ:
    # A process of a job ends with its launcher, even if that is killed. SIGTERM lets it save (see run/termination.py).
    signal_at_parent_death(signal.SIGTERM)
    try:
        os.kill(int(_LAUNCHER or os.getppid()), 0)
    except ProcessLookupError:
        sys.exit(128 + signal.SIGTERM)  # it has ended already


@dataclass(frozen=True)
class World:
    """This process in its job.

    Attributes:
        rank: number of this process, 0..size - 1.
        size: number of processes.
        place: the device on which this process computes.
    """

    rank: int
    size: int
    place: paddle.base.core.Place

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0, which writes the log and the checkpoints."""
        return self.rank == 0


def start_world(device: str, precision: str = "float32", attention: str = "plain") -> World:
    """Choose the device ("auto", "cpu" or "gpu"), connect to the other processes, and switch to static graphs.

    Raises InputError as `check_device` does.
    """
    paddle = load_paddle()
    use_gpu = check_device(device, precision, attention=attention)
    place = use_device(use_gpu)
    # Run operations one by one, in the order of the program. Otherwise operations that draw random numbers would run
    # in a varying order, so that no run could be repeated; and the chunks of a computation that is split to save memory
    # would be computed at the same time. (FLAGS_new_executor_serial_run is not enough: it uses a single thread, but
    # visits the operations breadth first.)
    paddle.set_flags({"FLAGS_enable_pir_in_executor_trace_run": True})
    if WORLD_SIZE > 1:
        from paddle.distributed import fleet

        # fleet has to be initialised before static mode is switched on.
        with quiet():
            if not use_gpu:
                os.environ["PADDLE_DISTRI_BACKEND"] = "gloo"
                connect_first_group(RANK, WORLD_SIZE)
            # It would warn that the first group is there already.
            fleet.init(is_collective=True, log_level="ERROR")
    paddle.enable_static()
    return World(RANK, WORLD_SIZE, place)


def inference_config(program: Path, parameters: Path, device: str = "auto") -> paddle.inference.Config:
    """Return Paddle's settings for running an exported program on a device: "cpu", or "auto" for a GPU if there is one.

    Neither fleet nor static mode is needed for this, so it can be called without `start_world`.
    """
    load_paddle()
    from paddle.inference import Config

    config = Config(str(program), str(parameters))
    if check_device(device):
        config.enable_use_gpu(_GPU_POOL_MB, gpu_number())
    else:
        config.disable_gpu()
        config.set_cpu_math_library_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        # With oneDNN, which is Paddle's default here, an encoder of 6 x 384 takes 0.34 s instead of 0.27 s for 16
        # sequences of 64 tokens, and its outputs differ by 2e-6 from those of the executor instead of not at all.
        config.disable_mkldnn()
    if not IS_VERBOSE:
        config.disable_glog_info()
    return config
