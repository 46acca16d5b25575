"""The memory of one process of a training, predicted from the sizes of the tensors.

A step is replayed: the forward pass adds what the backward pass will read, the backward pass frees it and adds
gradients, and the largest sum is the prediction. No number is fitted; what a part keeps is listed where it is added.
Not included: the process itself (code, Paddle; 0.4 GB on a CPU), the allocator's unused memory, and a GPU's context and
workspaces.

Shape letters: N context rows, R query rows, M predicted rows, H hidden, I inner size of the feed-forward network,
A heads, L slots, C classes, O size of an output table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from ernie_gram.distributed.buckets import plan_buckets
from ernie_gram.model.config import NUM_BUCKETS, ModelConfig
from ernie_gram.model.parameters import count
from ernie_gram.planning.exchange import tables_by_row, used_rows
from ernie_gram.pretraining.chunked_softmax import BLOCKS, chunks_for
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.network import parameter_shapes
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.pretraining.terms.catalog import terms_of
from ernie_gram.pretraining.terms.term import Term
from reader.batches.sampler import accumulation_steps

FLOAT, HALF = 4, 2
# Adam's two moments.
MOMENTS = 2
ACTIVATIONS, SOFTMAX, GRADIENTS, BUCKETS = "activations", "softmax over classes", "gradients", "exchange"
ACCUMULATED = "accumulated gradients"
PARTS = (ACTIVATIONS, SOFTMAX, GRADIENTS, BUCKETS, ACCUMULATED)


@dataclass(frozen=True)
class Memory:
    """Bytes by part at the moment when their sum is largest.

    `parameters` and `moments` are there all the time; the others are those of `moment`, "forward", "backward" or
    "update".
    """

    parameters: int
    moments: int
    parts: dict[str, int]
    moment: str

    @property
    def total(self) -> int:
        """All bytes."""
        return self.parameters + self.moments + sum(self.parts.values())


@dataclass
class _Ledger:
    """The bytes that are allocated while a step is replayed, by part, and their largest sum so far."""

    now: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 0))
    peak: dict[str, int] = field(default_factory=dict)
    moment: str = "forward"
    peak_moment: str = "forward"

    def change(self, part: str, size: float) -> None:
        """Allocate `size` bytes, or free them if negative."""
        self.now[part] += int(size)
        if sum(self.now.values()) > sum(self.peak.values()):
            self.peak, self.peak_moment = dict(self.now), self.moment

    def briefly(self, part: str, size: float) -> None:
        """Allocate `size` bytes and free them again."""
        self.change(part, size)
        self.change(part, -size)


@dataclass(frozen=True)
class _Head:
    """A softmax over classes: its table, and the memory of the logits of one chunk."""

    rows: int
    classes: int
    size: int
    chunks: int
    samples: bool
    is_tied: bool
    bytes_per_logit: int

    @property
    def table(self) -> int:
        """Bytes of a tensor of the table's shape."""
        return self.classes * self.size * FLOAT

    @property
    def logits(self) -> int:
        """Bytes of the logits of a chunk; they become the softmax in place."""
        return -(-self.rows // self.chunks) * self.classes * self.bytes_per_logit

    @property
    def kept(self) -> int:
        """Bytes from the forward to the backward pass: copies of the table and of its gradient, and the rows."""
        return 2 * self.table + 3 * self.rows * self.size * FLOAT

    def forward(self, ledger: _Ledger) -> None:
        """Logits and the table's gradient; with several chunks also the gradient of a chunk, which is added to it.

        A tied table is concatenated first, which is a copy.
        """
        tables = (1 if self.chunks == 1 else 2) + (1 if self.is_tied else 0)
        blocks = self.classes * BLOCKS * FLOAT if self.samples else 0
        ledger.briefly(SOFTMAX, self.logits + tables * self.table + blocks)
        ledger.change(SOFTMAX, self.kept)

    def backward(self, ledger: _Ledger) -> None:
        """The table's gradient, which stays; then what the forward pass kept is freed."""
        ledger.change(GRADIENTS, self.table)
        ledger.change(SOFTMAX, -self.kept)


def rank_memory(config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape, ranks: int) -> Memory:
    """Return the predicted memory of one of `ranks` processes that holds a batch of the given shape at a time."""
    shapes = parameter_shapes(config, sizes)
    numbers = count(shapes)
    ledger = _Ledger()
    if accumulation_steps(config.data.batch_size, ranks, config.trainer.micro_batch) > 1:
        ledger.change(ACCUMULATED, numbers * FLOAT)
    main, terms = config.model, terms_of(config.objective)
    # The first encoder's samples are read by the main one.
    first = [(encoder, term) for term in terms if (encoder := term.encoder(config))]
    for encoder, term in first:
        _encoder_forward(ledger, config, encoder, shape, queries=0)
        for head in _heads(config, sizes, shape, ranks, term):
            head.forward(ledger)
    _encoder_forward(ledger, config, main, shape, shape.query_rows)
    later = [term for term in terms if not term.encoder(config)]
    own_heads = [head for term in later for head in _heads(config, sizes, shape, ranks, term)]
    for head in own_heads:
        head.forward(ledger)
    ledger.change(ACTIVATIONS, sum(term.kept_bytes(config, shape) for term in terms))
    ledger.moment = "backward"
    for head in reversed(own_heads):
        head.backward(ledger)
    # The backward passes of all encoders advance side by side, so a layer of each is recomputed at the same time.
    beside = 0.0
    if config.trainer.recompute:
        beside = sum(_recomputed_bytes(config, encoder, shape, queries=0) for encoder, _ in first)
    ledger.change(ACTIVATIONS, beside)
    _encoder_backward(ledger, config, main, shape, shape.query_rows)
    ledger.change(ACTIVATIONS, -beside)
    for encoder, term in first:
        for head in _heads(config, sizes, shape, ranks, term):
            head.backward(ledger)
        _encoder_backward(ledger, config, encoder, shape, queries=0)
    ledger.moment = "update"
    # Whatever is not a gradient is freed; gradients of shared tables are summed.
    # Accumulated gradients are not scaled or exchanged in place: GRADIENTS is then a copy of them.
    ledger.now |= {ACTIVATIONS: 0, SOFTMAX: 0, GRADIENTS: numbers * FLOAT, BUCKETS: 0}
    # A bucket is a copy of its gradients. Clipping scales the gradients in place.
    by_row = tables_by_row(config, shapes) if ranks > 1 else {}
    dense = [prod(each) for name, each in shapes.items() if name not in by_row]
    ledger.briefly(BUCKETS, largest_bucket(dense, ranks) * FLOAT)
    for rows, width in by_row.values():
        # To find the used rows, one byte per number; then two copies of these rows.
        used = used_rows(config, sizes, shape) * width * FLOAT
        ledger.briefly(BUCKETS, max(rows * width, 2 * used))
    return Memory(numbers * FLOAT, MOMENTS * numbers * FLOAT, ledger.peak, ledger.peak_moment)


def largest_bucket(numbers: list[int], ranks: int) -> int:
    """Return the numbers in the largest bucket of an exchange of tensors of these sizes; 0 with one process."""
    if ranks == 1:
        return 0
    return max(sum(numbers[i] for i in bucket) for bucket in plan_buckets(numbers))


def _heads(config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape, ranks: int, term: Term) -> list[_Head]:
    """Return the softmaxes of a term in a step."""
    model, assumed_rows = config.model, config.assumed_rows(ranks)
    size = model.out_emb_size or model.embedding_size
    # In bfloat16 and float16 the softmax is copied for the products.
    per_logit = FLOAT if _operand(config) == FLOAT else FLOAT + HALF
    return [
        _Head(
            *(each.rows, each.classes, size, chunks_for(assumed_rows, each.classes), each.samples),
            *(model.out_emb_size == 0, per_logit),
        )
        for each in term.softmaxes(config, sizes, shape)
    ]


def _layer_bytes(config: PretrainConfig, model: ModelConfig, shape: BatchShape, queries: int) -> float:
    """Return the bytes that one encoder layer keeps for its backward pass.

    Per row, in units of H numbers: query, key and value (3), the attention's sum (1), input and output of both
    LayerNorms (4; the output of the last is the next layer's input); in units of I numbers: input and output of the
    activation (2). Two numbers per LayerNorm and row, and one byte of dropout mask per number of both sub-layers.
    Per score: the softmax (1 number), and with dropout its output (1 number) and its mask (1 byte).
    In bfloat16 and float16, LayerNorms stay float32, and their outputs and the weights are copied for the products. The
    softmax is counted as on a CPU, float32 and a copy; a GPU keeps only the copy, so that it needs less.
    """
    rows, operand = shape.rows + queries, _operand(config)
    copied = 0 if operand == FLOAT else operand
    hidden = model.hidden_size * (4 * FLOAT + 4 * operand + 2 * copied) + 2 * model.feed_forward_size * operand
    hidden += 4 * FLOAT
    if model.hidden_dropout_prob:
        hidden += 2 * model.hidden_size
    per_score = FLOAT + copied
    if model.attention_probs_dropout_prob:
        per_score += operand + 1
    weights = copied * _layer_weights(model)
    return rows * hidden + rows * shape.slots * model.num_attention_heads * per_score + weights


def _kept_layer_bytes(config: PretrainConfig, model: ModelConfig, shape: BatchShape, queries: int) -> float:
    """Return the bytes that one encoder layer keeps from the forward to the backward pass.

    With recompute these are its output, which is the next layer's input, and the masks of dropout.
    """
    if not config.trainer.recompute:
        return _layer_bytes(config, model, shape, queries)
    per_row = model.hidden_size * FLOAT
    if model.hidden_dropout_prob:
        per_row += 2 * model.hidden_size
    if model.attention_probs_dropout_prob:
        per_row += shape.slots * model.num_attention_heads
    return (shape.rows + queries) * per_row


def _operand(config: PretrainConfig) -> int:
    """Return the bytes per number of the operands of matrix products."""
    return FLOAT if config.optimizer.precision == "float32" else HALF


def _feed_forward_bytes(config: PretrainConfig, model: ModelConfig, rows: int) -> int:
    """Return the bytes of the two sides of the activation in a layer's feed-forward network."""
    return 2 * rows * model.feed_forward_size * _operand(config)


def _layer_weights(model: ModelConfig) -> int:
    """Return the numbers in the weight matrices of a layer."""
    return 4 * model.hidden_size**2 + 2 * model.hidden_size * model.feed_forward_size


def _scores(model: ModelConfig, rows: int, shape: BatchShape) -> int:
    """Return the bytes of the scores of `rows` rows for the context's L keys in all heads."""
    return rows * shape.slots * model.num_attention_heads * FLOAT


def _encoder_forward(
    ledger: _Ledger, config: PretrainConfig, model: ModelConfig, shape: BatchShape, queries: int
) -> None:
    rows = shape.rows + queries
    ledger.change(ACTIVATIONS, _embedding_bytes(model, rows))
    if model.use_relative_position:
        # The one-hot rows of the product that looks up the bias.
        ledger.change(ACTIVATIONS, NUM_BUCKETS * shape.slots**2 * FLOAT)
    for _ in range(model.num_hidden_layers):
        ledger.change(ACTIVATIONS, _kept_layer_bytes(config, model, shape, queries))
    if config.trainer.recompute:
        # All layers read the same bias of all pairs, and read it again.
        ledger.change(ACTIVATIONS, _scores(model, rows, shape))
    else:
        # The bias is freed after the attention of the last layer.
        ledger.change(ACTIVATIONS, -_feed_forward_bytes(config, model, rows))
        ledger.briefly(ACTIVATIONS, _scores(model, shape.rows, shape))
        ledger.change(ACTIVATIONS, _feed_forward_bytes(config, model, rows))


def _recomputed_bytes(config: PretrainConfig, model: ModelConfig, shape: BatchShape, queries: int) -> float:
    """Return the bytes of what one encoder layer computes again."""
    layer = _layer_bytes(config, model, shape, queries)
    return layer - _kept_layer_bytes(config, model, shape, queries)


def _recomputing_backward(
    ledger: _Ledger, config: PretrainConfig, model: ModelConfig, shape: BatchShape, queries: int
) -> None:
    rows = shape.rows + queries
    inner, scores = _feed_forward_bytes(config, model, rows), _scores(model, rows, shape)
    again, kept = (each(config, model, shape, queries) for each in (_recomputed_bytes, _kept_layer_bytes))
    # The gradient of a layer's output, and the sum of the layers' gradients of the bias.
    ledger.change(ACTIVATIONS, rows * model.hidden_size * FLOAT)
    ledger.change(ACTIVATIONS, scores if model.use_relative_position else 0)
    for _ in range(model.num_hidden_layers):
        ledger.change(ACTIVATIONS, again)
        # The gradient of the activation's output; then that of the attention weights. (On a CPU, what an operation was
        # the last to read may be freed only while the next one runs: then it is twice as much.)
        ledger.briefly(ACTIVATIONS, inner / 2)
        ledger.change(ACTIVATIONS, -inner)
        ledger.briefly(ACTIVATIONS, scores)
        ledger.change(GRADIENTS, _layer_weights(model) * FLOAT)
        ledger.change(ACTIVATIONS, inner - again - kept)
    ledger.change(ACTIVATIONS, -scores)
    if model.use_relative_position:
        ledger.change(ACTIVATIONS, -scores - NUM_BUCKETS * shape.slots**2 * FLOAT)
    _free_embeddings(ledger, model, rows)


def _encoder_backward(
    ledger: _Ledger, config: PretrainConfig, model: ModelConfig, shape: BatchShape, queries: int
) -> None:
    if config.trainer.recompute:
        _recomputing_backward(ledger, config, model, shape, queries)
        return
    rows = shape.rows + queries
    inner = _feed_forward_bytes(config, model, rows)
    # Without dropout, the scores have gradients before and after the softmax beside what is kept; with dropout, these
    # take the place of what its backward pass has read.
    score_gradients = 0 if model.attention_probs_dropout_prob else 2 * _scores(model, shape.rows, shape)
    # The gradient of a layer's output.
    ledger.change(ACTIVATIONS, rows * model.hidden_size * FLOAT)
    for _ in range(model.num_hidden_layers):
        # Both sides of the activation have a gradient; then they and their gradients are freed.
        ledger.briefly(ACTIVATIONS, inner)
        ledger.change(ACTIVATIONS, -inner)
        ledger.briefly(ACTIVATIONS, score_gradients)
        ledger.change(GRADIENTS, _layer_weights(model) * FLOAT)
        ledger.change(ACTIVATIONS, inner - _layer_bytes(config, model, shape, queries))
        if model.use_relative_position:
            # Each layer's gradient of the bias is kept until all of them are added up.
            ledger.change(ACTIVATIONS, _scores(model, shape.rows, shape))
    if model.use_relative_position:
        ledger.briefly(ACTIVATIONS, _scores(model, shape.rows, shape))
        ledger.change(ACTIVATIONS, -model.num_hidden_layers * _scores(model, shape.rows, shape))
        ledger.change(ACTIVATIONS, -NUM_BUCKETS * shape.slots**2 * FLOAT)
    _free_embeddings(ledger, model, rows)


def _free_embeddings(ledger: _Ledger, model: ModelConfig, rows: int) -> None:
    """Free what the embeddings kept, and the gradient of their output."""
    ledger.change(ACTIVATIONS, -_embedding_bytes(model, rows) - rows * model.hidden_size * FLOAT)


def _embedding_bytes(model: ModelConfig, rows: int) -> int:
    """Return the bytes of the input and output of the embeddings' LayerNorm, and of the dropout mask."""
    return rows * model.embedding_size * (2 * FLOAT + (1 if model.hidden_dropout_prob else 0))
