"""Run an exported model. It needs no checkpoint, and none of the code that built the program."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ernie_gram.distributed.device import inference_config
from ernie_gram.distributed.loading import import_paddle
from ernie_gram.inference.description import PARAMETERS, PROGRAM, Description, load_description
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
            description: the result of `load_description` for this folder, if the caller has it already: it verifies
                the checksums of all files, which reads them once.
            device: "cpu", or "auto" for a GPU if there is one.

        Raises InputError if the folder is incomplete or damaged, or if this version of Paddle cannot load the program.
        """
        self.description = description or load_description(folder)
        paddle = import_paddle()
        config = inference_config(folder / PROGRAM, folder / PARAMETERS, device)
        self._seed = paddle.seed
        try:
            self._predictor = paddle.inference.create_predictor(config)
        except (RuntimeError, ValueError) as error:
            raise InputError(
                f"{folder}: Paddle {paddle.__version__} cannot load this program, written by Paddle "
                f"{self.description.paddle}: {error}"
            ) from error
        self._inputs = [
            (spec, self._predictor.get_input_handle(name))
            for spec, name in zip(self.description.feeds, self._predictor.get_input_names(), strict=True)
        ]
        outputs = map(self._predictor.get_output_handle, self._predictor.get_output_names())
        self._outputs = dict(zip(self.description.fetch_names, outputs, strict=True))

    def run(self, batch: Batch, names: Sequence[str] | None = None, seed: int | None = None) -> dict[str, np.ndarray]:
        """Run the program once on a batch; return its fetches as arrays.

        Args:
            batch: holds at least the feeds, in the shapes of the description.
            names: of the fetches to return; None means all.
            seed: of the samples that the program draws, if it draws any. With the same seed, the executor that trains
                draws the same samples.
        """
        if seed is not None:
            self._seed(seed)
        for spec, handle in self._inputs:
            handle.copy_from_cpu(np.ascontiguousarray(batch[spec.name], spec.dtype))
        self._predictor.run()
        return {name: self._outputs[name].copy_to_cpu() for name in names or self._outputs}
