"""A model for Python code: `from ernie_gram import Model`. docs/api.md shows its use.

Paddle is loaded when it is first needed. Nothing here changes the caller's mode, device or random numbers.

Shape letters: B sequences, L slots, M masked slots, C classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np

from ernie_gram.config import check_counts, require
from ernie_gram.distributed.loading import import_paddle
from ernie_gram.formats import ours
from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.registry import read_model, write_model
from ernie_gram.inference.description import PRECISIONS, PROBABILITIES
from ernie_gram.inference.texts import (
    DRAWS,
    LINES_PER_BATCH,
    VECTORS,
    EncodedText,
    Guess,
    Text,
    TextAttention,
    TextEncoder,
    guesses_by_row,
    padded,
    parts_of,
)
from ernie_gram.inference.texts import Vectors as Vectors
from ernie_gram.pretraining.config import max_tokens, prediction_config
from reader.batches import fields
from reader.batches.fields import Batch
from reader.corpus.units import UnitNames
from reader.errors import InputError, located
from reader.lexicon.lexicon_file import segmenter_of
from reader.system.arrays import Float32s, Int64s
from reader.tokenization.given_texts import listed

if TYPE_CHECKING:
    from ernie_gram.eager import ModelLayer
    from ernie_gram.inference.forward import Forward


class Model:
    """A model that was loaded from a folder. Errors that a user can correct are `reader.errors.InputError`.

    Attributes:
        folder: the checkpoint or model folder that was read.
        notes: what was changed or left out while reading, one line each.
        texts: the converter from text to token IDs; tokenizer: the one that it uses.
        has_heads: whether it can fill masks; has_ngrams: whether n-grams are among the candidates; has_generator:
            whether a generator fills the masks first, so that probabilities are means over its samples; has_pooler;
            whether it reads pairs of texts (has_sentence_types).
    """

    _layer: ModelLayer | None = None
    _forward: Forward | None = None

    def __init__(self, record: ModelRecord, precision: str = "float32") -> None:
        """Wrap the record of a model; to read a folder, use `load`."""
        self._precision = precision
        config = None if record.pretraining is None else prediction_config(record)
        self.folder, self.notes = record.source, record.notes
        self.has_heads = config is not None
        self.has_ngrams = config is not None and config.objective.is_explicit and bool(record.lexicon)
        self.has_generator = config is not None and config.objective.has_generator
        self.has_pooler = "pooled_fc.w_0" in record.parameters
        self.has_sentence_types = record.config.has_sentence_types
        self.texts = TextEncoder(record.vocabulary, segmenter_of(record.lexicon), max_tokens(record))
        self.tokenizer = self.texts.tokenizer
        self._record = record

    def __repr__(self) -> str:
        return f"<Model {self.folder}: {self._record.summary}>"

    @classmethod
    def load(cls, folder: str | Path, precision: str = "float32") -> Model:
        """Read a model: a run, a checkpoint, or a model folder of any format.

        Args:
            precision: of matrix products, "float32" or "bfloat16"; for `layer` it is always float32.

        Raises InputError if there is no model in the folder, or if it is damaged, and for another precision; at the
        first use, if this device does not have it.
        """
        require(precision in PRECISIONS, "precision", f"{precision!r}: choose {' or '.join(PRECISIONS)}")
        return Model(read_model(Path(folder)), precision)

    @property
    def units(self) -> UnitNames:
        """The text of every class of the heads."""
        return UnitNames(self.texts.vocabulary, self._record.lexicon)

    @property
    def layer(self) -> ModelLayer:
        """The network as an eager layer, without dropout until its `train()` is called; the same object every time.

        The other methods use its current parameters, also after training it. Raises InputError if a parameter is
        missing.
        """
        if self._layer is None:
            import_paddle()
            from ernie_gram.eager import load_layer

            self._layer, self._forward = load_layer(self._record), None
        return self._layer

    def save(self, folder: str | Path, format: str = ours.NAME, accept_loss: bool = False) -> list[str]:
        """Write the model, with the current parameters of `layer`, as a new folder.

        Args:
            format: one of formats.registry.WRITTEN_NAMES.
            accept_loss: write the model even if the format cannot hold everything.
        Returns:
            What was lost, one line each.

        Raises InputError if the folder exists, if the format cannot hold the model, and if `layer` has other
        parameters than before or numbers that are not finite.
        """
        record = self._record
        if self._layer is not None:
            from ernie_gram.eager import with_parameters_of

            record = with_parameters_of(self._layer, record)
        return write_model(record, Path(folder), format, accept_loss)

    def prepare(self, *names: str) -> Forward:
        """Load Paddle, and the network for outputs of these names, now instead of at the first use; return it."""
        import_paddle()
        from ernie_gram.inference.forward import forward_of

        self._forward = self._forward or forward_of(self._record, self._layer, self._precision)
        if names:
            self._forward.prepare(names)
        return self._forward

    @overload
    def encode(self, texts: Iterable[Text], batch_size: int = ..., truncate: bool = ...) -> list[Vectors]: ...
    @overload
    def encode(
        self, texts: Iterable[Text], batch_size: int = ..., truncate: bool = ..., *, vectors: str
    ) -> Float32s: ...
    def encode(
        self,
        texts: Iterable[Text],
        batch_size: int = LINES_PER_BATCH,
        truncate: bool = False,
        vectors: str | None = None,
    ) -> list[Vectors] | Float32s:
        """Return hidden states, pooled vectors and offsets of texts, or of pairs of texts.

        Args:
            batch_size: number of texts that are computed together.
            truncate: cut off the end of texts that are too long; of two texts, the end of the longer one.
            vectors: return one vector for each text instead, float32 [B, H]: "mean" over its tokens, [CLS] and [SEP]
                included; "cls", that of [CLS]; or "pooled".

        Raises InputError that names the text, counted from 0, if it is empty, too long, or neither text nor pair; and
        for `vectors` of a model without a pooler, or of no text.
        """
        check_counts(batch_size=batch_size)
        known = [name for name in VECTORS if name != "pooled" or self.has_pooler]
        require(vectors is None or vectors in known, "vectors", f"{vectors!r}: the model has {', '.join(known)}")
        encoded = self._encoded(texts, truncate, may_be_none=vectors is None)
        names = [vectors] if vectors else ["hidden", "pooled"] if self.has_pooler else ["hidden"]
        found = self.answers(encoded, names, batch_size)
        if vectors:
            return np.stack([each[vectors] for each in found])
        return [
            Vectors(self._tokens(text), text.offsets, text.sentence_ids, each["hidden"], each.get("pooled"))
            for text, each in zip(encoded, found, strict=True)
        ]

    def answers(self, texts: Sequence[EncodedText], names: Sequence[str], batch_size: int) -> list[dict[str, Float32s]]:
        """Return outputs of each of some encoded texts by name: "hidden" [n, H]; "cls", "mean", "pooled" [H]."""
        found: dict[int, dict[str, Float32s]] = {}
        # Sorted by length, so that a batch has little padding.
        order = np.argsort([len(text) for text in texts], kind="stable").tolist()
        for first in range(0, len(order), batch_size):
            rows = order[first : first + batch_size]
            outputs = self.outputs([texts[row] for row in rows], names)
            for i, row in enumerate(rows):
                found[row] = {name: values[i] for name, values in outputs.items()}
                if "hidden" in names:
                    found[row]["hidden"] = found[row]["hidden"][: len(texts[row])].copy()
        return [found[row] for row in range(len(texts))]

    def attention(self, text: Text, truncate: bool = False) -> TextAttention:
        """Return the attention weights of every layer and head for a text, or for a pair of texts, without dropout.

        Args:
            truncate: as for `encode`.

        Raises InputError if the text is empty or too long.
        """
        encoded = self.encode_parts(parts_of(text), truncate)
        layer = self.layer
        from ernie_gram.eager import attention_weights

        weights = attention_weights(layer, self._batch([encoded]))[:, 0]
        return TextAttention(self._tokens(encoded), encoded.offsets, weights)

    def _tokens(self, text: EncodedText) -> list[str]:
        return [self.texts.vocabulary.tokens[token] for token in text.ids]

    def outputs(self, texts: list[EncodedText], names: Sequence[str]) -> dict[str, Float32s]:
        """Return outputs for a batch of encoded texts by name: "hidden" [B, L, H]; "cls", "mean", "pooled" [B, H]."""
        return self.prepare(*names).run(self._batch(texts), names)

    def batch(self, texts: Sequence[Text], truncate: bool = False) -> Batch:
        """Return the inputs of `layer` in order, all int64: `input_ids` [B, L], `lengths` [B], `sentence_ids` [B, L].

        Args and errors: as for `encode`; there must be at least one text.
        """
        return self._batch(self._encoded(texts, truncate, may_be_none=False))

    def _batch(self, texts: list[EncodedText]) -> Batch:
        sentence_ids = padded([text.sentence_ids for text in texts], 0)
        return self.texts.batch([text.ids for text in texts]) | {fields.SENTENCE_IDS.name: sentence_ids}

    def encode_parts(self, parts: tuple[str, ...], truncate: bool) -> EncodedText:
        """Return the token IDs of a text, or of a pair of texts; raises InputError as `encode`."""
        encoded = self.texts.encode(parts, truncate)
        if encoded.sentence_ids.any() and not self.has_sentence_types:
            raise InputError(f"a pair of texts, but {self.folder} has one sentence type (type_vocab_size)")
        return encoded

    def _encoded(self, texts: Iterable[Text], truncate: bool, may_be_none: bool) -> list[EncodedText]:
        encoded = []
        for i, text in enumerate(listed(texts, "texts")):
            with located(f"texts[{i}]"):
                encoded.append(self.encode_parts(parts_of(text), truncate))
        require(may_be_none or bool(encoded), "texts", "must have at least one text")
        return encoded

    def fill_mask(self, text: str, top: int = 5, ngrams: bool = False, draws: int = DRAWS) -> list[list[Guess]]:
        """Return the most probable units for every [MASK] of a text, best first.

        Args:
            top: number of units for each mask.
            ngrams: n-grams only.
            draws: the number of samples to average over, if the model has a generator.

        Raises InputError if the model has no heads, for a text without masks, and for one that is too long.
        """
        check_counts(top=top, draws=draws)
        return self.fill([self.texts.encode_masked(text)], top, ngrams, draws)[0]

    def fill(self, rows: list[Int64s], top: int, ngrams: bool = False, draws: int = DRAWS) -> list[list[list[Guess]]]:
        """Return what `fill_mask` does for a batch of texts, given as their token IDs (see `texts.encode_masked`).

        With a generator, the samples for a text depend on the batch.
        """
        require(not ngrams or self.has_ngrams, "ngrams", f"{self.folder} does not predict n-grams; leave it out")
        batch = self.texts.masked_batch(rows)
        return guesses_by_row(self.units, batch, self.probabilities(batch, draws), top, ngrams)

    def probabilities(self, batch: Batch, draws: int = DRAWS) -> Float32s:
        """Return the probability of every class in every slot of the field `slots`, float32 [M, C]."""
        forward = self.prepare(PROBABILITIES)
        from ernie_gram.graph import unchanged_random_state

        draws = draws if self.has_generator else 1
        with unchanged_random_state():
            drawn = (forward.run(batch, [PROBABILITIES], seed)[PROBABILITIES] for seed in range(draws))
            return reduce(np.add, drawn) / np.float32(draws)
