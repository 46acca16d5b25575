"""Predict the memory of one process in pre-training: of encoders (see encoder_memory.py), heads, and tables.

Shape letters: C classes, O size of an output table.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ernie_gram.model.config import ModelConfig
from ernie_gram.model.parameters import count
from ernie_gram.planning.encoder_memory import (
    ACCUMULATED,
    ACTIVATIONS,
    BUCKETS,
    FLOAT,
    GRADIENTS,
    HALF,
    SOFTMAX,
    EncoderMemory,
    Ledger,
    Memory,
)
from ernie_gram.planning.exchange import tables_by_row, used_rows
from ernie_gram.pretraining.chunked_softmax import BLOCKS, chunks_for
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.network import parameter_shapes
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.pretraining.terms.catalog import terms_of, wanted_rows
from ernie_gram.pretraining.terms.term import Softmax, Term
from reader.batches.sampler import accumulation_steps


@dataclass(frozen=True)
class _Head:
    """A softmax over classes: its table, and the memory of the logits of one chunk."""

    softmax: Softmax
    size: int
    chunks: int
    is_tied: bool
    bytes_per_logit: int

    @property
    def table(self) -> int:
        """Bytes of a tensor of the table's shape."""
        return self.softmax.classes * self.size * FLOAT

    @property
    def logits(self) -> int:
        """Bytes of the logits of a chunk; they become the softmax in place."""
        return -(-self.softmax.rows // self.chunks) * self.softmax.classes * self.bytes_per_logit

    @property
    def kept(self) -> int:
        """Bytes from the forward to the backward pass: copies of the table and of its gradient, and the rows."""
        return 2 * self.table + 3 * self.softmax.rows * self.size * FLOAT

    def forward(self, ledger: Ledger) -> None:
        """Replay the forward pass: logits, and the table's gradient.

        With several chunks, the gradient of a chunk is added to that of the table. A tied table is concatenated first,
        which is a copy.
        """
        tables = (1 if self.chunks == 1 else 2) + (1 if self.is_tied else 0)
        blocks = self.softmax.classes * BLOCKS * FLOAT if self.softmax.samples else 0
        ledger.briefly(SOFTMAX, self.logits + tables * self.table + blocks)
        ledger.change(SOFTMAX, self.kept)

    def backward(self, ledger: Ledger) -> None:
        """Replay the backward pass: the table's gradient stays, and what the forward pass kept is freed."""
        ledger.change(GRADIENTS, self.table)
        ledger.change(SOFTMAX, -self.kept)


def rank_memory(config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape, ranks: int, cpu: bool) -> Memory:
    """Return the predicted memory of one of `ranks` processes that holds a batch of the given shape at a time.

    Args:
        cpu: whether the processes compute on a CPU; otherwise it is the memory of a GPU.
    """
    shapes = parameter_shapes(config, sizes)
    ledger = Ledger(count(shapes))
    if accumulation_steps(config.data.batch_size, ranks, config.trainer.micro_batch) > 1:
        ledger.change(ACCUMULATED, ledger.numbers * FLOAT)

    def encoder(model: ModelConfig, wanted: int, queries: int = 0) -> EncoderMemory:
        rows = shape.computed(cpu).rows
        recompute, of_products = config.trainer.recompute, config.optimizer.precision
        return EncoderMemory(model, rows, wanted, shape.slots, of_products, recompute, cpu, queries)

    # On a GPU, the softmax is copied for products in bfloat16 and float16.
    per_logit = FLOAT if cpu or config.optimizer.precision == "float32" else FLOAT + HALF
    size, is_tied = config.model.out_emb_size or config.model.embedding_size, config.model.out_emb_size == 0
    assumed_rows = config.assumed_rows(ranks)

    def heads(term: Term) -> list[_Head]:
        """Return the softmaxes of a term in a step."""
        return [
            _Head(each, size, chunks_for(assumed_rows, each.classes), is_tied, per_logit)
            for each in term.softmaxes(config, sizes, shape)
        ]

    terms = terms_of(config.objective)
    main = encoder(config.model, wanted_rows(config.objective, shape.computed(cpu)), shape.query_rows)
    # The first encoder's samples are read by the main one.
    first = [(encoder(own, shape.predicted_rows), term) for term in terms if (own := term.encoder(config))]
    for before, term in first:
        before.forward(ledger)
        for head in heads(term):
            head.forward(ledger)
    main.forward(ledger)
    later = [term for term in terms if not term.encoder(config)]
    own_heads = [head for term in later for head in heads(term)]
    for head in own_heads:
        head.forward(ledger)
    ledger.change(ACTIVATIONS, sum(term.activation_bytes(config, shape) for term in terms))
    ledger.moment = "backward"
    for head in reversed(own_heads):
        head.backward(ledger)
    # The backward passes of all encoders advance side by side, so a layer of each is recomputed at the same time.
    beside = sum(before.recomputed(before.rows) for before, _ in first)
    ledger.change(ACTIVATIONS, beside)
    main.backward(ledger)
    ledger.change(ACTIVATIONS, -beside)
    for before, term in first:
        for head in heads(term):
            head.backward(ledger)
        before.backward(ledger)
    by_row = tables_by_row(config, shapes) if ranks > 1 else {}
    ledger.update([prod(each) for name, each in shapes.items() if name not in by_row], ranks)
    for _, width in by_row.values():
        # Two copies of the used rows.
        ledger.briefly(BUCKETS, 2 * used_rows(config, sizes, shape) * width * FLOAT)
    return ledger.memory
