"""Run an exported model. It needs no checkpoint.

On a CPU its network is built again, with the kernels for this processor, over the parameters of the export. On a GPU,
and for exports of earlier versions, Paddle's executor runs the program itself: `paddle.inference` ends a process in
which a program has compiled operations (Paddle 3.3.1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ernie_gram.config.checks import require
from ernie_gram.distributed.device import inference_place
from ernie_gram.distributed.loading import import_paddle
from ernie_gram.inference.description import PROGRAM, Description, load_description
from reader.batches.fields import Batch
from reader.errors import InputError

if TYPE_CHECKING:
    from ernie_gram.inference.forward import Forward
    from ernie_gram.training.program import Program


class ExportedProgram:
    """An exported program on a device of this machine.

    Attributes:
        description: what the program reads and computes.
    """

    def __init__(
        self,
        folder: Path,
        description: Description | None = None,
        device: str = "auto",
        precision: str = "float32",
        build: Callable[..., Program] | None = None,
    ) -> None:
        """Load a folder that `export.export_program` wrote.

        Args:
            description: the result of `load_description` for this folder, if the caller has it already. Loading it
                takes time, because it verifies the checksums of all files.
            device: "cpu", or "auto" for a GPU if there is one.
            precision: of matrix products on a CPU, "float32" or "bfloat16"; other programs have their own.
            build: builds a program as outputs.build_outputs does, which is the default.

        Raises InputError if the folder is incomplete or damaged, if this version of Paddle cannot load the program, and
        for bfloat16 if the program itself has to be run.
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
        self._forward: Forward | None = None
        if not self.description.network or not place.is_cpu_place():
            reason = f"{folder} runs as it was exported; leave it out, or export the model again and use a CPU"
            require(precision == "float32", "precision", reason)
        else:
            from ernie_gram.inference.forward import Forward
            from ernie_gram.inference.outputs import build_outputs
            from ernie_gram.paddle_private import array_of

            names = [parameter.name for parameter in program.global_block().all_parameters()]
            arrays = {name: array_of(self._scope.find_var(name).get_tensor()) for name in names}
            build = partial(build or build_outputs, self.description.network, precision=precision)
            self._forward = Forward(build, arrays, str(folder), place, self._scope)

    def run(self, batch: Batch, names: Sequence[str] | None = None, seed: int | None = None) -> dict[str, np.ndarray]:
        """Run the program once on a batch; return its fetches as arrays.

        Args:
            batch: holds at least the feeds, in the shapes of the description.
            names: of the fetches to return; None means all.
            seed: of the samples that the program draws, if it draws any. With the same seed, the executor that trains
                draws the same samples.
        """
        if self._forward is not None:
            return self._forward.run(batch, names or self.description.fetch_names, seed)
        if seed is not None:
            self._paddle.seed(seed)
        feed = {name: np.ascontiguousarray(batch[spec.name], spec.dtype) for name, spec in self._feeds.items()}
        with self._static():
            # A program from a file always returns all its fetches.
            values = self._run_prepared(feed)
        found = dict(zip(self.description.fetch_names, values, strict=True))
        return {name: found[name] for name in names or found}

    @cached_property
    def _run_prepared(self) -> Callable[[dict[str, np.ndarray]], list[np.ndarray]]:
        from ernie_gram.paddle_private import prepared_run

        return prepared_run(self._executor, self._program, self._fetches)
