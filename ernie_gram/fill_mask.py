"""Predict the units behind [MASK] with a pre-trained model; n-grams are among the candidates.

    python -m ernie_gram.fill_mask --model output/run "the [MASK] proposed [MASK] a radical overhaul"

Without a text, lines are read from standard input. Invalid texts are named on standard error; the valid ones are
answered in order, and the exit status is then 2.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ernie_gram.config.loading import config_from_tree
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.run import checkpoint
from reader.batches import fields
from reader.batches.fields import Batch
from reader.corpus.memmap import LEXICON
from reader.corpus.units import UnitCutter, UnitNames
from reader.errors import InputError, OneLineParser, one_line_errors, print_error
from reader.lexicon.lexicon_file import Lexicon, segmenter_of
from reader.tokenization.vocabulary_file import kept_vocabulary

if TYPE_CHECKING:
    from ernie_gram.distributed.world import World

Int64s = npt.NDArray[np.int64]
MASK = "[MASK]"
NO_MASK = f"no {MASK} in it"
LINES_PER_BATCH = 16


@dataclass(frozen=True)
class Guess:
    """A unit and its probability."""

    unit: str
    probability: float


def checkpoint_in(path: Path) -> Path:
    """Return `path` if it is a checkpoint, or the newest valid checkpoint if it is a run's folder.

    Raises InputError if there is none.
    """
    if not path.is_dir():
        raise InputError(f"{path}: no such folder")
    if (path / checkpoint.STATE).is_file():
        checkpoint.verify(path)
        return path
    found = checkpoint.newest_valid(path)
    if found is None:
        raise InputError(f"{path}: not a checkpoint, and not a run's folder with a valid checkpoint")
    return found


def load_units(path: Path, identity: dict[str, str]) -> UnitNames:
    """Load the vocabulary and the lexicon in a run's folder; raise InputError if they belong to another run."""
    vocabulary = kept_vocabulary(path, identity["vocabulary"], "the model was trained with")
    lexicon = Lexicon.load(path / LEXICON) if identity["lexicon"] else None
    if lexicon is not None and lexicon.fingerprint != identity["lexicon"]:
        raise InputError(f"{path / LEXICON}: not the lexicon the model was trained with")
    return UnitNames(vocabulary, lexicon)


class MaskFiller:
    """A pre-trained model that ranks units for masked slots."""

    def __init__(self, path: Path, world: World, draws: int = 8) -> None:
        """Load a verified checkpoint; raises InputError if one of its files is damaged or missing.

        Args:
            path: of the checkpoint, see `checkpoint_in`.
            draws: if a generator fills the slots, the number of its samples over which probabilities are averaged.
        """
        import paddle

        from ernie_gram.pretraining.network import VocabularySizes
        from ernie_gram.pretraining.programs import build_prediction
        from ernie_gram.training.variables import set_arrays

        state = checkpoint.load_state(path)
        self.units = load_units(path.resolve().parent, state.identity)
        self.config = config_from_tree(PretrainConfig, state.config, str(path))
        self.draws = draws if self.config.objective.has_generator else 1
        self._seed = paddle.seed
        # Cuts text into single tokens (no n-grams), but with the word segmenter of the training corpus.
        self._cutter = UnitCutter(self.units.vocabulary, None, segmenter_of(self.units.lexicon))
        sizes = VocabularySizes(len(self.units.vocabulary), self.units.num_ngrams)
        self._program = build_prediction(self.config, sizes)
        self._executor = paddle.static.Executor(world.place)
        self._executor.run(self._program.startup)
        set_arrays(checkpoint.load_model(path), self._program.parameters, str(path), world.place)

    def probabilities(self, batch: Batch) -> npt.NDArray[np.float32]:
        """Return the probability of every class in every predicted slot of a batch, float32 [M, C].

        Under contiguous masking there are F classes.
        """
        total: npt.NDArray[np.float32] | None = None
        for draw in range(self.draws):
            self._seed(draw)
            found = self._program.run(self._executor, batch)["probabilities"]
            total = found if total is None else total + found
        assert total is not None
        return total / np.float32(self.draws)

    def best(self, probabilities: npt.NDArray[np.float32], limit: int, ngrams_only: bool = False) -> list[Guess]:
        """Return the `limit` units with the highest probability in one slot, [C], best first."""
        first = len(self.units.vocabulary) if ngrams_only else 0
        ranked = first + np.argsort(-probabilities[first:], kind="stable")[:limit]
        return [Guess(self.units.text(int(unit)), float(probabilities[unit])) for unit in ranked]

    def ids(self, text: str) -> Int64s:
        """Return the token IDs of a text with [MASK]s, [CLS] and [SEP] included.

        Raises InputError for a text without a mask, or with more tokens than the model was trained on.
        """
        vocabulary, max_tokens = self.units.vocabulary, self.config.data.max_seq_len
        # The parts between masks become lines, so that the positions of the masks are known after tokenization.
        parts = text.replace("\n", " ").split(MASK)
        if len(parts) == 1:
            raise InputError(NO_MASK)
        pieces, starts, _ = self._cutter.cut("\n".join([*parts, ""]).encode("utf-8", "ignore"))
        ids = [vocabulary.cls]
        for i in range(len(parts)):
            ids += [*([vocabulary.mask] if i else []), *pieces[starts[i] : starts[i + 1]]]
        ids.append(vocabulary.sep)
        if len(ids) > max_tokens:
            raise InputError(f"{len(ids)} tokens, but the model was trained on at most {max_tokens}")
        return np.array(ids, np.int64)

    def batch(self, rows: list[Int64s]) -> Batch:
        """Return texts, given as their token IDs (see `ids`), as a batch."""
        vocabulary = self.units.vocabulary
        lengths = np.array([len(row) for row in rows], np.int64)
        input_ids = np.full((len(rows), lengths.max()), vocabulary.pad, np.int64)
        for row, ids_of_row in zip(input_ids, rows, strict=True):
            row[: len(ids_of_row)] = ids_of_row
        return {
            fields.INPUT_IDS.name: input_ids,
            fields.LENGTHS.name: lengths,
            fields.SLOTS.name: np.flatnonzero(input_ids == vocabulary.mask).astype(np.int64),
        }

    def fill(self, rows: list[Int64s], limit: int, ngrams_only: bool = False) -> list[list[list[Guess]]]:
        """Return the `limit` best units for every mask of every text; texts are given as for `batch`."""
        batch = self.batch(rows)
        guesses: list[list[list[Guess]]] = [[] for _ in rows]
        row_of_slot = batch[fields.SLOTS.name] // batch[fields.INPUT_IDS.name].shape[1]
        for row, probabilities in zip(row_of_slot, self.probabilities(batch), strict=True):
            guesses[row].append(self.best(probabilities, limit, ngrams_only))
        return guesses

    def text(self, ids: Int64s) -> str:
        """Return the text of one sequence of token IDs, [CLS] and [SEP] included, with masks numbered from 1."""
        vocabulary, number = self.units.vocabulary, count(1)
        tokens = ids[1:-1].tolist()
        return vocabulary.text(f"[MASK {next(number)}]" if token == vocabulary.mask else token for token in tokens)


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
                group.append((text, filler.ids(text)))
            except InputError as error:
                print_error(f"{name}: {error}")
                self.invalid += 1
            if len(group) == LINES_PER_BATCH:
                yield group
                group = []
        if group:
            yield group


def decoded(text: bytes) -> str:
    """Decode UTF-8; raises InputError."""
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 ({error.reason} at byte {error.start})") from error


def standard_input() -> Iterator[tuple[str, bytes]]:
    """Yield the non-blank lines of standard input, each with its name."""
    for number, line in enumerate(sys.stdin.buffer, start=1):
        if line.strip():
            yield f"standard input, line {number}", line.rstrip(b"\r\n")


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
        "--model", type=Path, required=True, metavar="DIR", help="a run's folder (its newest checkpoint) or a step_N"
    )
    parser.add_argument("--top", type=int, default=5, metavar="K", help="number of units to show (%(default)s)")
    parser.add_argument("--ngrams", action="store_true", help="rank n-grams only")
    parser.add_argument("--json", action="store_true", help="print one JSON object per line: text, masks, units")
    parser.add_argument(
        "--draws",
        type=int,
        default=8,
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
    found = checkpoint_in(arguments.model)
    from ernie_gram.distributed.world import start_world

    filler = MaskFiller(found, start_world("auto"), arguments.draws)
    if arguments.ngrams and not (filler.units.num_ngrams and filler.config.objective.is_explicit):
        raise InputError(f"--ngrams: {arguments.model} was not trained to predict n-grams")
    valid = ValidTexts(texts or standard_input())
    for group in valid.groups(filler):
        rows = [ids for _, ids in group]
        for (text, _), guesses in zip(group, filler.fill(rows, arguments.top, arguments.ngrams), strict=True):
            show(text, guesses, arguments.json)
    if valid.invalid:
        sys.exit(2)


if __name__ == "__main__":
    one_line_errors(main)
