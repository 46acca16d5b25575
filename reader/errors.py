"""Errors that the user can mend: one exception, and how commands show it, as a single line."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Callable
from typing import NoReturn


class InputError(Exception):
    """Bad input. The message names the file, line or key, and says what to do."""


class SystemRefusedError(InputError):
    """Not the input is bad: the disk is full, say, or memory short. Tried again later, the same command goes on."""


def one_line_errors(main: Callable[[], None]) -> None:
    """Run a command's `main`; what the user can mend becomes one line on standard error, and exit status 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        main()
    except InputError as error:
        _fail(str(error), 2)
    except BrokenPipeError:
        _fail("the program that read the output has gone; stopped", 1)
    except OSError as error:
        _fail(f"{error.filename or 'input or output'}: {error.strerror or error}", 2)
    except RecursionError:
        _fail("the input is nested too deeply", 2)
    except MemoryError:
        _fail("out of memory", 1)
    except KeyboardInterrupt:
        _fail("interrupted", 130)


def _fail(message: str, status: int) -> NoReturn:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(status)


class OneLineParser(argparse.ArgumentParser):
    """A command line whose mistakes are InputErrors rather than a page of usage."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see {self.prog} --help)")
