"""Build the programs of evaluation and prediction, which read the parameters that the training program updates.

Shape letters: M predicted slots, C classes.
"""

from __future__ import annotations

import paddle

from ernie_gram.pretraining.chunked_softmax import SoftmaxOptions, probabilities
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.network import PretrainModel, softmax_options
from ernie_gram.pretraining.sizes import CorpusSizes
from ernie_gram.pretraining.terms.catalog import evaluated, fields_of
from ernie_gram.pretraining.terms.term import Encoded
from ernie_gram.training.job import Feeds
from ernie_gram.training.program import Program, open_program


def build_evaluation(config: PretrainConfig, sizes: CorpusSizes, world_size: int) -> Program:
    """Build a program with the fetches of the terms that are evaluated (see `Term.fetches`)."""
    terms, softmax = evaluated(config.objective), softmax_options(config, False, world_size)
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
