"""Run an exported model. It needs no checkpoint, and none of the code that built the program.

Paddle's executor runs it: `paddle.inference` ends a process in which a program has compiled operations (Paddle 3.3.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from ernie_gram.distributed.device import inference_place
from ernie_gram.distributed.loading import import_paddle
from ernie_gram.inference.description import PROGRAM, Description, load_description
from reader.batches.fields import Batch
from reader.errors import InputError


class ExportedProgram:
    """An exported program on a device of this machine.

    Attributes:
        description: what the program reads and computes.
    """

    def __init__(self, folder: Path, description: Description | None = None, device: str = "auto") -> None:
        """Load a folder that `export.export_program` wrote.

        Args:
            description: the result of `load_description` for this folder, if the caller has it already. Loading it
                takes time, because it verifies the checksums of all files.
            device: "cpu", or "auto" for a GPU if there is one.

        Raises InputError if the folder is incomplete or damaged, or if this version of Paddle cannot load the program.
        """
        self.description = description or load_description(folder)
        self._paddle = import_paddle()
        from ernie_gram.graph import static_mode

        place = inference_place(device)
        self._scope = self._paddle.static.Scope()
        self._static = partial(static_mode, self._scope)
        with self._static():
            self._executor = self._paddle.static.Executor(place)
            try:
                program, feeds, fetches = self._paddle.static.load_inference_model(
                    str(folder / Path(PROGRAM).stem), self._executor
                )
            except (RuntimeError, ValueError) as error:
                raise InputError(
                    f"{folder}: Paddle {self._paddle.__version__} cannot load this program, written by Paddle "
                    f"{self.description.paddle}: {error}"
                ) from error
        self._program, self._feeds = program, dict(zip(feeds, self.description.feeds, strict=True))
        self._fetches = fetches

    def run(self, batch: Batch, names: Sequence[str] | None = None, seed: int | None = None) -> dict[str, np.ndarray]:
        """Run the program once on a batch; return its fetches as arrays.

        Args:
            batch: holds at least the feeds, in the shapes of the description.
            names: of the fetches to return; None means all.
            seed: of the samples that the program draws, if it draws any. With the same seed, the executor that trains
                draws the same samples.
        """
        if seed is not None:
            self._paddle.seed(seed)
        feed = {name: np.ascontiguousarray(batch[spec.name], spec.dtype) for name, spec in self._feeds.items()}
        with self._static():
            # A program from a file always returns all its fetches.
            values = self._executor.run(self._program, feed=feed, fetch_list=self._fetches)
        found = dict(zip(self.description.fetch_names, values, strict=True))
        return {name: found[name] for name in names or found}
