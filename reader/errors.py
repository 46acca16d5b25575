"""Errors that the user can correct, lines on a console that may be gone or full, and words of messages."""

from __future__ import annotations

import argparse
import difflib
import io
import os
import reprlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import NoReturn, TextIO

MAX_MESSAGE = 2000  # characters of an error, a note or a warning; it may quote a file of any content
# Reentrant: a signal handler may write while its thread does.
_dropping = threading.RLock()
_shortened = reprlib.Repr()
_shortened.maxlevel, _shortened.maxstring, _shortened.maxother = 1, 100, 100


class InputError(Exception):
    """The input is invalid. The message names the file, line or key, and says what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(_one_line(message))


class SystemRefusedError(InputError):
    """The system refused an operation although the input is valid, for example because the disk or memory is full.

    The same command, when run again later, resumes the job.
    """


class InUseError(InputError):
    """Another process is using what this one needs. The message says which; the same command may succeed later."""


@contextmanager
def located(where: object) -> Iterator[None]:
    """Put `where`, such as a file or an option, before the message of an InputError of the body."""
    try:
        yield
    except InputError as error:
        raise type(error)(f"{where}: {error}") from error


def one_line_errors(main: Callable[[], None]) -> None:
    """Run the `main` function of a command, and print each expected error as one line on standard error.

    The exit status is 2 for InputError and for errors of the operating system, 1 for InUseError, if memory is exhausted
    or if the output pipe is closed, and 130 for an interrupt.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        main()
    except InputError as error:
        _fail(str(error), 1 if isinstance(error, InUseError) else 2)
    except BrokenPipeError:
        _fail("the program that reads the output has exited; stopped", 1)
    except OSError as error:
        _fail(f"{error.filename or 'input or output'}: {error.strerror or error}", 2)
    except MemoryError:
        _fail("out of memory", 1)
    except KeyboardInterrupt:
        _fail("interrupted", 130)


def print_error(message: str) -> None:
    """Print an error as one line on standard error."""
    print_line(f"error: {message}")


def last_error_in(printed: str) -> str:
    """Return the last error in what commands have printed, or else its last line, or ""."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    # After the error of a process come the lines of its launcher.
    errors = [line for line in lines if line.startswith("error: ")] or lines
    return errors[-1] if errors else ""


def print_note(message: str) -> None:
    """Print what the user should know although nothing failed, as one line on standard error."""
    print_line(f"note: {message}")


def print_warning(message: str) -> None:
    """Print a problem that does not stop the command, as one line on standard error."""
    print_line(f"warning: {message}")


def print_line(message: str) -> None:
    """Print one line on standard error."""
    # One write: lines of several processes on the same console must not be mixed, as print's two writes may be.
    write_or_drop(sys.stderr, f"{_one_line(message)}\n")


def above_bars(stream: TextIO) -> AbstractContextManager[None]:
    """Let the lines that the body writes to a stream appear above the bars on the same terminal (see progress.py)."""
    tqdm = getattr(sys.modules.get("tqdm"), "tqdm", None)
    return tqdm.external_write_mode(stream) if tqdm else nullcontext()


def write_or_drop(stream: TextIO | None, text: str = "") -> None:
    """Write a text, with all that the stream holds back, or drop both if the system refuses it; the work goes on.

    A console may be gone, as after `| tee` and Ctrl-C, or full.

    Args:
        stream: None if the process was started without it.
    """
    if stream is None:
        return
    try:
        with above_bars(stream):
            stream.write(text)
            stream.flush()
    except OSError:
        _drop(stream)


def _drop(stream: TextIO) -> None:
    """Forget what a stream holds back. Python would write it at the end of the process, and exit with status 120."""
    with _dropping, open(os.devnull, "wb") as nowhere:
        number = stream.fileno()
        kept = os.dup(number)
        os.dup2(nowhere.fileno(), number)
        stream.flush()
        os.dup2(kept, number)
        os.close(kept)


def _one_line(message: str) -> str:
    """Return a message as one line; a long one without its middle: it begins with the file, and ends with the cure."""
    line, kept = " ".join(message.split()), MAX_MESSAGE // 2
    return line if len(line) <= MAX_MESSAGE else f"{line[:kept]} ... {line[-kept:]}"


def quoted(value: object) -> str:
    """Return a value of a file for an error message: without line breaks, and shortened if it is long or nested."""
    return _shortened.repr(value)


def similar(name: object, known: Iterable[object]) -> str:
    """Return `; did you mean ...?` with the most similar known name, or "" if none is similar.

    Other values than strings, such as numbers in a YAML file, are compared as texts.
    """
    near = difflib.get_close_matches(str(name), list(map(str, known)), n=1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else ""


def _fail(message: str, status: int) -> NoReturn:
    print_error(message)
    sys.exit(status)


def counted(number: int, noun: str) -> str:
    """Return "1 row", "2 rows" or "12,345 rows" for the noun "row"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def first_line(docstring: str | None) -> str:
    """Return the first line of a docstring, for the description of a command."""
    return (docstring or "").partition("\n")[0]


class OneLineParser(argparse.ArgumentParser):
    """A command-line parser that raises InputError for invalid arguments instead of printing the usage text."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see {self.prog} --help)")
