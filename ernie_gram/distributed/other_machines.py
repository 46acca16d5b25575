"""The state messages between the launchers of a job on several machines, in the key-value store of the first one."""

from __future__ import annotations

import itertools
import json
import threading
import time
from typing import Any

POLL_SECONDS = 2.0
# A launcher that has shown no sign of life for this time is taken for dead.
SILENT_SECONDS = 30.0
# The launcher with the store stays this long at its end, so that the others can read why.
LINGER_SECONDS = 3 * POLL_SECONDS
RUNNING, DONE, FAILED = "running", "done", "failed"


class OtherMachines:
    """A thread that reports the state of this launcher to the other launchers of the job, and watches them.

    Attributes:
        failure: why the job cannot go on because of another machine, or "".
    """

    def __init__(self, store: Any, job: str, name: str) -> None:
        """`store` is the key-value store of Paddle's launcher, on the machine of --master.

        `name` is that of this machine, unique in the job.
        """
        self._store, self._prefix, self._name = store, f"/{job}/watch/", name
        self._own, self.failure = (RUNNING, ""), ""
        self._ended, self._told = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="other machines", daemon=True)
        self._thread.start()

    def fail(self, reason: str) -> None:
        """Tell the others that this machine has failed; the first reason counts."""
        if self._own[0] != FAILED:
            self._own = FAILED, reason

    def end(self) -> None:
        """Tell the others that this machine has finished, unless it has failed; waits until they can know."""
        if self._own[0] != FAILED:
            self._own = DONE, ""
        self._told.wait(2 * POLL_SECONDS)
        time.sleep(LINGER_SECONDS)
        self._ended.set()

    def _run(self) -> None:
        seen: dict[str, tuple[str, float]] = {}
        reached = time.monotonic()
        for count in itertools.count():
            (state, reason), now = self._own, time.monotonic()
            # The count makes every sign of life another value.
            value = json.dumps([state, reason, count])
            if self._store.put(self._prefix + self._name, value):
                reached = now
                if state != RUNNING:
                    self._told.set()
            values = self._store.get_prefix(self._prefix)
            for key, text in values.items() if isinstance(values, dict) else ():
                if text != seen.get(key, ("", 0.0))[0]:
                    seen[key] = text, now
            self.failure = self.failure or self._judge(seen, reached, now)
            if self._ended.wait(POLL_SECONDS):
                return

    def _judge(self, seen: dict[str, tuple[str, float]], reached: float, now: float) -> str:
        states = {key.removeprefix(self._prefix): (*json.loads(text), when) for key, (text, when) in seen.items()}
        states.pop(self._name, None)
        for name, (state, message, _, when) in states.items():
            if state == FAILED:
                return f"machine {name}: {message}"
            # Silence counts only up to the last contact with the store.
            if state == RUNNING and reached - when > SILENT_SECONDS:
                return f"machine {name}: no sign of life from its launcher for {SILENT_SECONDS:.0f} s"
        if now - reached > SILENT_SECONDS and any(state == RUNNING for state, *_ in states.values()):
            return f"the launcher on the machine of --master has been out of reach for {SILENT_SECONDS:.0f} s"
        return ""
