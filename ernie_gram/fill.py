"""What a pre-trained model thinks is behind a mask: the likeliest units, n-grams among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import paddle

from ernie_gram import checkpoint
from ernie_gram.config import PretrainConfig
from ernie_gram.config_file import config_from_tree
from ernie_gram.distributed import World
from ernie_gram.model import Sizes
from ernie_gram.parameters import set_arrays
from ernie_gram.program import build_prediction
from reader import batch as fields
from reader.batch import Batch
from reader.corpus import Corpus
from reader.errors import InputError


@dataclass(frozen=True)
class Guess:
    """A unit and its probability."""

    unit: str
    probability: float


class Filler:
    """A pre-trained model that ranks units for masked slots."""

    def __init__(self, path: Path, corpus: Corpus, world: World, most: int = 5) -> None:
        """Load the checkpoint in folder `path`; raises InputError if it is not whole or does not fit the corpus.

        Args:
            corpus: any made with the checkpoint's vocabulary and lexicon; it names the units.
            most: how many units to rank for each mask.
        """
        checkpoint.verify(path)
        state = checkpoint.load_state(path)
        for what in ("vocabulary", "lexicon"):
            if state.identity[what] != getattr(corpus.info, what):
                raise InputError(f"{path}: was trained with another {what} than {corpus.path} was made with")
        self.config: PretrainConfig = config_from_tree(state.config, str(path))
        self.corpus = corpus
        sizes = Sizes(corpus.info.num_tokens, corpus.info.num_ngrams)
        self._program = build_prediction(self.config, sizes, most)
        self._executor = paddle.static.Executor(world.place)
        self._executor.run(self._program.startup)
        set_arrays(checkpoint.load_model(path), self._program.parameters, str(path), world.place)

    def guesses(self, batch: Batch) -> Iterator[list[Guess]]:
        """For every predicted slot of a batch, the likeliest units, best first."""
        ranked = self._program.run(self._executor, batch)
        for classes, probabilities in zip(ranked["classes"], ranked["probabilities"], strict=True):
            yield [
                Guess(self.corpus.unit_text(int(unit)), float(probability))
                for unit, probability in zip(classes, probabilities, strict=True)
            ]

    def text(self, batch: Batch, row: int) -> str:
        """The context of one sequence as the model sees it, its masks numbered from 1."""
        tokens = self.corpus.vocabulary.tokens
        shown: list[str] = []
        masks = 0
        for token in batch[fields.INPUT_IDS.name][row, 1 : batch[fields.LENGTHS.name][row] - 1]:
            if token == self.corpus.vocabulary.mask:
                masks += 1
                shown.append(f"[MASK {masks}]")
            elif tokens[token].startswith("##") and shown:
                shown[-1] += tokens[token][2:]
            else:
                shown.append(tokens[token])
        return " ".join(shown)
