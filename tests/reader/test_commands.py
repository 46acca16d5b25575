"""How commands start: Ctrl-C while they import, and file names in a locale that has ASCII only."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from reader.commands import interrupts_end_at_once
from reader.console_script import MODULES
from tests.support.commands import python

# Calls functions, each in a process of its own, which gets SIGINT when it imports the module `trigger`.
INTERRUPT = """
import os, signal, sys

# The tests may be a job in the background, which ignores SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)

class Interrupter:
    def __init__(self, trigger):
        self.trigger = trigger

    def find_spec(self, name, *_):
        if name == self.trigger:
            os.kill(os.getpid(), signal.SIGINT)

def interrupted(run, trigger):
    child = os.fork()
    if not child:
        sys.meta_path.insert(0, Interrupter(trigger))
        run()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

"""


def test_every_command_ends_with_one_line_if_it_is_interrupted_at_its_first_import() -> None:
    code = INTERRUPT + (
        "from reader.console_script import MODULES, main\n"
        "for name, module in MODULES.items():\n"
        "    sys.argv = ['ernie-gram', name]\n"
        "    print(interrupted(main, module))\n"
    )
    done = python("-c", code)
    assert done.stdout.split() == ["130"] * len(MODULES)
    assert done.stderr.splitlines() == ["error: interrupted"] * len(MODULES)


def test_paddle_can_be_interrupted_while_it_loads_without_its_messages() -> None:
    code = INTERRUPT + (
        "from ernie_gram.distributed.loading import load_paddle\nprint(interrupted(load_paddle, 'paddle'))\n"
    )
    done = python("-c", code)
    assert (done.stdout, done.stderr) == ("130\n", "error: interrupted\n")


@pytest.mark.parametrize("handler", [signal.SIG_IGN, lambda *_: None])
def test_another_handler_of_interrupts_stays(handler: Any) -> None:
    """A job in the background ignores interrupts."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        with interrupts_end_at_once():
            assert signal.getsignal(signal.SIGINT) is handler
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
