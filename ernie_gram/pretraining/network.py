"""The network that is pre-trained: the trunk, and the parts of the terms of the objective.

Its programs of evaluation and prediction read the parameters that the training program updates.

Shape letters: M predicted slots, C classes.
"""

from __future__ import annotations

from typing import Any

import paddle
from paddle import nn

from ernie_gram.model.encoder import Queries
from ernie_gram.model.parameters import Shapes, shapes_of
from ernie_gram.pretraining.chunked_softmax import SoftmaxOptions, probabilities
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.sizes import CorpusSizes
from ernie_gram.pretraining.terms.catalog import evaluated, fields_of, reads_context, terms_of
from ernie_gram.pretraining.terms.generator import Generator
from ernie_gram.pretraining.terms.term import Encoded, Term
from ernie_gram.pretraining.trunk import Trunk, declare_trunk
from ernie_gram.training.job import Feeds, LossTerm
from ernie_gram.training.program import Program, open_program
from reader.batches import fields


def parameter_shapes(config: PretrainConfig, sizes: CorpusSizes) -> Shapes:
    """Return the shape of every parameter by name."""
    own = (term.parameters(config, sizes) for term in terms_of(config.objective))
    return shapes_of(declare_trunk(config, sizes), *own)


class PretrainModel(Trunk):
    """The trunk and the parts of the terms; `parts` has a layer for each term that has one, by its name."""

    def __init__(self, config: PretrainConfig, sizes: CorpusSizes) -> None:
        super().__init__(config, sizes)
        self.objective, self.terms = config.objective, terms_of(config.objective)
        self.parts = nn.LayerDict()
        for term in self.terms:
            layer = term.layer(config, sizes, self)
            if layer is not None:
                self.parts[term.name] = layer

    def part(self, term: Term) -> Any:
        """Return a term's layer, or None."""
        return dict(self.parts.items()).get(term.name)

    def encode(self, feeds: Feeds, softmax: SoftmaxOptions) -> Encoded:
        """Put the samples of the generator, if there is one, into the masked slots, and run the encoder.

        This gives the context of the second term of equation 5.
        """
        input_ids, lengths, slots = (feeds[field.name] for field in (fields.INPUT_IDS, fields.LENGTHS, fields.SLOTS))
        generated = self.parts[Generator.name](feeds, softmax) if self.objective.has_generator else None
        replacement = None if generated is None else self.replacement(slots, generated.sampled)
        queries = None
        if fields.QUERY_SLOTS.name in feeds:
            queries = Queries(feeds[fields.QUERY_RANKS.name], feeds[fields.QUERY_SLOTS.name])
        reads_all = reads_context(self.terms)
        wanted = None if reads_all else slots
        context, queries_RH = self.encoder(input_ids, lengths, None, replacement, queries, wanted)
        masked_MH = paddle.gather(context, slots) if reads_all else context
        return Encoded(feeds, softmax, masked_MH, context if reads_all else None, queries_RH, generated)

    def losses(self, encoded: Encoded) -> list[LossTerm]:
        """Return the losses of the terms on a batch."""
        return [
            LossTerm(term.name, term.weight(self.objective), *term.loss(self.part(term), self, encoded))
            for term in self.terms
        ]


def build_evaluation(config: PretrainConfig, sizes: CorpusSizes, world_size: int) -> Program:
    """Build a program with the fetches of the terms that are evaluated (see `Term.fetches`)."""
    terms, softmax = evaluated(config.objective), SoftmaxOptions(False, config.assumed_rows(world_size))
    with open_program(fields_of(terms), config.optimizer.precision) as opened:
        model, encoded = _encoded(config, sizes, opened.feeds, softmax)
        fetches: dict[str, paddle.Tensor] = {}
        for term in terms:
            fetches |= term.fetches(model.part(term), model, encoded)
        return opened.finish(fetches)


def build_prediction(
    config: PretrainConfig, sizes: CorpusSizes, precision: str = "float32", portable: bool = False
) -> Program:
    """Build a program that fetches `probabilities`, float32 [M, C], of every class in every predicted slot.

    It holds all probabilities in memory, so it is meant for few slots. Under contiguous masking the classes are the
    tokens. For precision and portable, see `open_program`.
    """
    softmax = SoftmaxOptions(train=False, rows=1)
    with open_program(fields_of([]), precision, portable) as opened:
        model, encoded = _encoded(config, sizes, opened.feeds, softmax)
        return opened.finish({"probabilities": probabilities(model.head(encoded.masked))})


def _encoded(
    config: PretrainConfig, sizes: CorpusSizes, feeds: Feeds, softmax: SoftmaxOptions
) -> tuple[PretrainModel, Encoded]:
    model = PretrainModel(config, sizes)
    model.eval()
    return model, model.encode(feeds, softmax)
