"""Predict the units behind [MASK] with a pre-trained model; n-grams are among the candidates if it knows any.

    python -m ernie_gram.fill_mask --model output/run "the [MASK] proposed [MASK] a radical overhaul"

Without a text, lines are read from standard input. Invalid texts are named on standard error; the valid ones are
answered in order, and the exit status is then 2.
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("ernie_gram.fill_mask")

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ernie_gram.formats.model import Model
from ernie_gram.formats.registry import read_model
from ernie_gram.inference.requests import answering, decoded, read_lines
from ernie_gram.inference.texts import NO_MASK, Int64s, TextEncoder
from ernie_gram.inference.units import DRAWS, LINES_PER_BATCH, Guess, guesses_by_row, mean_over_draws
from reader.batches.fields import Batch
from reader.corpus.units import UnitNames
from reader.errors import InputError, OneLineParser, print_error, print_note
from reader.lexicon.lexicon_file import segmenter_of
from reader.system.progress import progress
from reader.tokenization.vocabulary import MASK

if TYPE_CHECKING:
    from ernie_gram.distributed.world import World


class MaskFiller:
    """A pre-trained model that ranks units for masked slots."""

    def __init__(self, model: Model, world: World, draws: int = DRAWS) -> None:
        """Build the program of a model with prediction heads; raises InputError if the model has none.

        Args:
            model: from a folder of any format (formats/registry.py).
            draws: if a generator fills the slots, the number of its samples over which probabilities are averaged.
        """
        if model.pretraining is None or model.vocabulary is None:
            lacks = "prediction heads" if model.pretraining is None else "vocabulary"
            raise InputError(f"{model.source}: the model has no {lacks}, so it cannot fill masks; choose another model")
        import paddle

        from ernie_gram.pretraining.programs import build_prediction, prediction_config
        from ernie_gram.pretraining.sizes import CorpusSizes
        from ernie_gram.training.variables import set_parameters

        self.units = UnitNames(model.vocabulary, model.lexicon)
        self.config = prediction_config(model)
        self.draws = draws if self.config.objective.has_generator else 1
        self._seed = paddle.seed
        self.texts = TextEncoder(self.units.vocabulary, segmenter_of(self.units.lexicon), self.config.data.max_seq_len)
        sizes = CorpusSizes(len(self.units.vocabulary), self.units.num_ngrams)
        self._program = build_prediction(self.config, sizes)
        self._executor = paddle.static.Executor(world.place)
        set_parameters(self._program.main, model.parameters, str(model.source), world.place)

    def probabilities(self, batch: Batch) -> npt.NDArray[np.float32]:
        """Return the probability of every class in every predicted slot of a batch, float32 [M, C].

        Under contiguous masking there are F classes.
        """

        def sampled(seed: int) -> npt.NDArray[np.float32]:
            self._seed(seed)
            return self._program.run(self._executor, batch)["probabilities"]

        return mean_over_draws(sampled, self.draws)

    def fill(self, rows: list[Int64s], limit: int, ngrams_only: bool = False) -> list[list[list[Guess]]]:
        """Return the `limit` best units for every mask of every text; texts are given as their token IDs."""
        batch = self.texts.masked_batch(rows)
        return guesses_by_row(self.units, batch, self.probabilities(batch), limit, ngrams_only)


@dataclass
class ValidTexts:
    """The valid ones of some named texts. The others are reported on standard error, one line each.

    Attributes:
        texts: name for errors, and text in UTF-8.
        invalid: number of texts reported so far.
    """

    texts: Iterable[tuple[str, bytes]]
    invalid: int = 0

    def groups(self, filler: MaskFiller) -> Iterator[list[tuple[str, Int64s]]]:
        """Yield LINES_PER_BATCH valid texts at a time, each with its token IDs."""
        group: list[tuple[str, Int64s]] = []
        for name, encoded in self.texts:
            try:
                text = decoded(encoded)
                group.append((text, filler.texts.encode_masked(text)))
            except InputError as error:
                print_error(f"{name}: {error}")
                self.invalid += 1
            if len(group) == LINES_PER_BATCH:
                yield group
                group = []
        if group:
            yield group


def show(text: str, guesses: list[list[Guess]], as_json: bool) -> None:
    """Print the predictions for one text."""
    if as_json:
        masks = [[asdict(guess) for guess in mask] for mask in guesses]
        print(json.dumps({"text": text, "masks": masks}, ensure_ascii=False), flush=True)
        return
    print(text)
    for number, mask in enumerate(guesses, start=1):
        print(f"  [MASK {number}]")
        for guess in mask:
            print(f"    {guess.probability:8.3%}  {guess.unit}")
    print(flush=True)


def main() -> None:
    """Run the command line."""
    parser = OneLineParser(prog="python -m ernie_gram.fill_mask", description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("text", nargs="*", help=f"texts with {MASK} in place of whole words (default: standard input)")
    parser.add_argument(
        "--model",
        type=Path,
        required=True,
        metavar="DIR",
        help="a run's folder (its newest checkpoint), a step_N, or another model folder with prediction heads",
    )
    parser.add_argument("--top", type=int, default=5, metavar="K", help="number of units to show (%(default)s)")
    parser.add_argument("--ngrams", action="store_true", help="rank n-grams only")
    parser.add_argument("--json", action="store_true", help="print one JSON object per line: text, masks, units")
    parser.add_argument(
        "--draws",
        type=int,
        default=DRAWS,
        metavar="N",
        help="for a model trained with a generator, the number of its samples to average over (%(default)s)",
    )
    arguments = parser.parse_args()
    for name in ("top", "draws"):
        if getattr(arguments, name) < 1:
            raise InputError(f"--{name}: must be at least 1")
    # Bytes of an argument that are not UTF-8 are surrogates here.
    texts = [
        (f"text {number}", text.encode("utf-8", "surrogateescape")) for number, text in enumerate(arguments.text, 1)
    ]
    if texts and not any(MASK.encode() in text for _, text in texts):
        # Without loading the model, which takes seconds.
        for name, _ in texts:
            print_error(f"{name}: {NO_MASK}")
        sys.exit(2)
    model = read_model(arguments.model)
    for note in model.notes:
        print_note(f"{model.source}: {note}")
    from ernie_gram.distributed.world import start_world

    world = start_world("auto")
    with progress("building the program"):
        filler = MaskFiller(model, world, arguments.draws)
    if arguments.ngrams and not (filler.units.num_ngrams and filler.config.objective.is_explicit):
        raise InputError(f"--ngrams: {arguments.model} was not trained to predict n-grams")
    with progress("answering") if texts else answering([]) as phase:
        valid = ValidTexts(texts or read_lines([], phase.advance))
        for group in valid.groups(filler):
            rows = [ids for _, ids in group]
            for (text, _), guesses in zip(group, filler.fill(rows, arguments.top, arguments.ngrams), strict=True):
                show(text, guesses, arguments.json)
    if valid.invalid:
        sys.exit(2)
