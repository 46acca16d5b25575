"""Load Paddle with a suitable number of threads, and without its messages and signal handlers."""

from __future__ import annotations

import io
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from types import ModuleType

from ernie_gram.distributed.processor import processor_settings, read_cpuinfo, read_mkl_setting
from reader.system.installation import child_environment
from reader.system.processes import available_cores

THREADS = "OMP_NUM_THREADS"
_THREADS_GIVEN = bool(os.environ.get(THREADS))  # by the user, or by the process that started this one
PROCESSES_ON_THIS_MACHINE = int(os.environ.get("PADDLE_LOCAL_SIZE", "1"))


def loading_settings() -> dict[str, str]:
    """Return the environment variables to set before Paddle is loaded, without those that are set already.

    Paddle's default is one thread. The processes of this machine share its cores. See also `processor_settings`.
    """
    settings = {THREADS: str(max(1, available_cores() // PROCESSES_ON_THIS_MACHINE))}
    settings["GLOG_minloglevel"] = "2"  # of the C++ code; errors are still shown
    unset = {name: value for name, value in settings.items() if not os.environ.get(name)}
    return unset | processor_settings(read_cpuinfo(), os.environ)


def prepare_environment() -> None:
    """Set what `loading_settings` returns in this process, and hide Paddle's warnings. For commands."""
    os.environ.update(loading_settings())
    warnings.filterwarnings("ignore", category=UserWarning, module=r"paddle\.")


def environment_of_ranks() -> dict[str, str]:
    """Return the environment for ranks: they share the cores, unless the number of threads was given."""
    environment = child_environment()
    if not _THREADS_GIVEN:
        environment.pop(THREADS, None)
    return environment


@contextmanager
def quiet() -> Iterator[None]:
    """Hide what Python prints and warns of in the context; an exception shows the prints."""
    hidden = io.StringIO()
    try:
        with redirect_stdout(hidden), redirect_stderr(hidden), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except BaseException:
        sys.stderr.write(hidden.getvalue())
        raise


@contextmanager
def delayed_sigterm() -> Iterator[None]:
    """Let a SIGTERM that arrives in the context take effect at its end."""
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)


def load_paddle() -> ModuleType:
    """Import Paddle without its messages and its signal handlers, and return it. For commands."""
    prepare_environment()
    # Paddle's signal handlers are in effect between these two lines. They allocate memory, which can block for ever if
    # the signal arrives during an allocation, and they end the process with another status.
    with quiet(), delayed_sigterm():
        import paddle

        paddle.disable_signal_handler()
    return paddle


@cache
def import_paddle() -> ModuleType:
    """Import Paddle for a program that is not one of our commands, and return it.

    It is loaded with the environment that our commands use (see `loading_settings`); if the program has imported it,
    only MKL's path is chosen, before the first product. Signal handlers are Paddle's own, as after `import paddle`.
    """
    os.environ.update(loading_settings())
    with quiet():
        import paddle
    read_mkl_setting()
    return paddle
