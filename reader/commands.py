"""Start a command. An interrupt during its imports ends it with a one-line error."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import NoReturn

INTERRUPTED = 128 + signal.SIGINT


def run_command(name: str, program: str = "") -> NoReturn:
    """Import the module of a command, call its `main` as `one_line_errors` does, and end this process.

    Args:
        name: of the module.
        program: what was typed before the arguments, for messages.
    """
    # argparse and load_config take the name of the program from there.
    sys.argv[0] = program or f"python -m {name}"
    with ExitStack() as imports:
        imports.enter_context(interrupts_end_at_once())
        from importlib import import_module

        from reader.errors import one_line_errors
        from reader.system.progress import show_progress

        show_progress()
        main = import_module(name).main

        def interruptible() -> None:
            imports.close()
            main()

        one_line_errors(interruptible)
    sys.exit()


def interrupts_end_at_once() -> AbstractContextManager[None]:
    """Within this context, which is for imports, SIGINT ends the process with a one-line error and status 130.

    Otherwise it would raise KeyboardInterrupt, which some imports lose or turn into another error.
    """
    return interrupts_handled_by(_end)


@contextmanager
def interrupts_handled_by(handler: Callable[..., object]) -> Iterator[None]:
    """Let a function handle SIGINT in this context, if it is the main thread's.

    A handler other than Python's own is left in place: the caller may have set one, and a background job ignores
    SIGINT.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    with handled_by(handler, signal.SIGINT):
        yield


@contextmanager
def handled_by(handler: Callable[..., object], *signals: int) -> Iterator[None]:
    """Let a function handle some signals in this context; call it from the main thread."""
    before = {number: signal.signal(number, handler) for number in signals}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def _end(*_: object) -> NoReturn:
    # Written to the file descriptor, because sys.stderr may be replaced. On a terminal, a progress bar is erased.
    os.write(2, b"\r\x1b[K" * os.isatty(2) + b"error: interrupted\n")
    os._exit(INTERRUPTED)
