"""Predict the memory of an encoder in a training step from the sizes of its tensors, for pre-training and fine-tuning.

A step is replayed: the forward pass adds what the backward pass will read, the backward pass frees it and adds
gradients, and the largest sum is the prediction. No number is fitted; what a part keeps is listed where it is added.
Not included: the process itself (code, Paddle; 0.4 GB on a CPU), the allocator's unused memory, and a GPU's context and
workspaces. Nothing here imports Paddle.

Shape letters: H hidden, I inner size of the feed-forward network, A heads, L slots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ernie_gram.distributed.buckets import plan_buckets
from ernie_gram.model.config import NUM_BUCKETS, ModelConfig

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

    def describe(self) -> str:
        """Return the sum, the moment and the parts in one line."""
        parts = {"parameters": self.parameters, "Adam's moments": self.moments, **self.parts}
        moment = "update" if self.moment == "update" else f"{self.moment} pass"
        listed = ", ".join(f"{name} {size_text(size)}" for name, size in parts.items() if size)
        return f"{size_text(self.total)} per process in the {moment}: {listed}"


def size_text(size: float) -> str:
    """Return a number of bytes in GB or MB."""
    return f"{size / 1e9:,.2f} GB" if size >= 1e8 else f"{size / 1e6:,.1f} MB"


@dataclass
class Ledger:
    """The bytes that are allocated while a step is replayed, by part, and their largest sum so far.

    Attributes:
        numbers: how many numbers all parameters have.
    """

    numbers: int
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

    def update(self, exchanged: Sequence[int], ranks: int) -> None:
        """Replay the update: what is no gradient is freed, and gradients are exchanged and clipped.

        Args:
            exchanged: numbers of the tensors that are summed over all processes as a whole.
        """
        self.moment = "update"
        # Gradients of shared tables are summed.
        # Accumulated gradients are not scaled or exchanged in place: GRADIENTS is then a copy of them.
        self.now |= {ACTIVATIONS: 0, SOFTMAX: 0, GRADIENTS: self.numbers * FLOAT, BUCKETS: 0}
        # A bucket is a copy of its gradients. Clipping scales the gradients in place.
        self.briefly(BUCKETS, largest_bucket(exchanged, ranks) * FLOAT)

    @property
    def memory(self) -> Memory:
        """The result of the replay: the memory at its peak."""
        return Memory(self.numbers * FLOAT, MOMENTS * self.numbers * FLOAT, self.peak, self.peak_moment)


def largest_bucket(numbers: Sequence[int], ranks: int) -> int:
    """Return the numbers in the largest bucket of an exchange of tensors of these sizes; 0 with one process."""
    if ranks == 1:
        return 0
    return max(sum(numbers[i] for i in bucket) for bucket in plan_buckets([*numbers]))


@dataclass(frozen=True)
class EncoderMemory:
    """An encoder and the rows that it computes at a time.

    Attributes:
        model: its shape, with the rates of dropout.
        context: number of rows of the context, with padding if it is computed.
        wanted: the rows of the context that the encoder returns; the last layer computes only these after its
            attention.
        slots: L, the width of the context, which is the number of keys of each row.
        precision: of matrix products.
        recompute: whether its layers are computed again in the backward pass.
        fuses_attention: whether the weights of the context are never stored, as on a CPU (kernels/attention.py; what
            its threads hold at a time is not included).
        queries: number of query rows.
    """

    model: ModelConfig
    context: int
    wanted: int
    slots: int
    precision: str
    recompute: bool
    fuses_attention: bool
    queries: int = 0

    @property
    def rows(self) -> int:
        """All rows."""
        return self.context + self.queries

    @property
    def layer_weights(self) -> int:
        """The numbers in the weight matrices of a layer."""
        return 4 * self.model.hidden_size**2 + 2 * self.model.hidden_size * self.model.feed_forward_size

    @property
    def ends(self) -> list[int]:
        """The rows of each layer after its attention."""
        return [self.rows] * (self.model.num_hidden_layers - 1) + [self.wanted + self.queries]

    def layer(self, end: int) -> float:
        """Return the bytes that a layer without recompute keeps for its backward pass.

        Per row, in units of H numbers: query, key and value (3), and the attention's sum (1). For each of the `end`
        rows after the attention: input and output of both LayerNorms (4; the output of the last is the next layer's
        input); in units of I numbers, input and output of the activation (2); two numbers per LayerNorm, and one byte
        of dropout mask per number of both sub-layers.
        Per score: the softmax (1 number), and with dropout its output (1 number) and its mask (1 byte).
        In bfloat16 and float16, LayerNorms stay float32, and their outputs and the weights are copied for the products.
        The softmax is in half precision on a GPU, and float32 with a copy on a CPU.
        With products in bfloat16 on a CPU, what only products read is kept in bfloat16 alone: the outputs of LayerNorms
        and of the activation. The attention's sum is kept in float32 too, for its own gradient.
        With fused attention only query rows have scores, and read copies of the context's keys and values (2 H numbers
        per row); rows of the context have one number per head, the logarithm of the softmax's sum.
        """
        model, operand = self.model, self._operand
        copied = HALF if self.precision != "float32" else 0
        norm_outputs = 2 * copied if self._rounds else 2 * (FLOAT + copied)
        after = model.hidden_size * (2 * FLOAT + norm_outputs) + self._feed_forward(1) + 4 * FLOAT
        if model.hidden_dropout_prob:
            after += 2 * model.hidden_size
        per_score = operand + (HALF if self._rounds else 0)
        if model.attention_probs_dropout_prob:
            per_score += operand + 1
        size = self.rows * model.hidden_size * 4 * operand + end * after
        if self._rounds:
            size += self.rows * model.hidden_size * HALF
        size += self._scores(self._stored) // FLOAT * per_score + copied * self.layer_weights
        if self.fuses_attention:
            size += self._log_sums + (2 * self.context * model.hidden_size * FLOAT if self.queries else 0)
        return size

    def kept_layer(self, end: int) -> float:
        """Return the bytes that a layer keeps from the forward to the backward pass.

        With recompute these are its output, which is the next layer's input, and the masks of dropout; with fused
        attention also the results of the attention.
        """
        if not self.recompute:
            return self.layer(end)
        per_row = self.model.hidden_size * FLOAT
        if self.model.hidden_dropout_prob:
            per_row += 2 * self.model.hidden_size
        size = end * per_row
        if self.model.attention_probs_dropout_prob:
            size += self._scores(self._stored) // FLOAT
        if self.fuses_attention:
            size += self._log_sums + self.context * self.model.hidden_size * FLOAT
        return size

    def recomputed(self, end: int) -> float:
        """Return the bytes of what a layer computes again."""
        return self.layer(end) - self.kept_layer(end)

    def forward(self, ledger: Ledger) -> None:
        """Replay the forward pass."""
        ledger.change(ACTIVATIONS, self._embeddings + self._distances)
        for end in self.ends:
            ledger.change(ACTIVATIONS, self.kept_layer(end))
        if self.recompute:
            # All layers read the same bias of all pairs, and read it again.
            ledger.change(ACTIVATIONS, self._bias + self._scores(self.queries))
        else:
            # The bias is freed after the attention of the last layer.
            inner = self._feed_forward(self.ends[-1])
            ledger.change(ACTIVATIONS, -inner)
            ledger.briefly(ACTIVATIONS, self._bias)
            ledger.change(ACTIVATIONS, inner)

    def backward(self, ledger: Ledger) -> None:
        """Replay the backward pass."""
        # The gradient of a layer's output.
        ledger.change(ACTIVATIONS, self.rows * self.model.hidden_size * FLOAT)
        (self._backward_again if self.recompute else self._backward)(ledger)
        # What the embeddings kept, and the gradient of their output.
        ledger.change(ACTIVATIONS, -self._embeddings - self.rows * self.model.hidden_size * FLOAT)

    def _backward_again(self, ledger: Ledger) -> None:
        bias = self._bias + self._scores(self.queries)
        has_bias = self.model.use_relative_position
        # With fused attention, queries, keys and values of the context are not computed again until their gradient,
        # of the same size, is. Its output is kept.
        projected = 3 * self.context * self.model.hidden_size * FLOAT if self.fuses_attention else 0
        # The sum of the layers' gradients of the bias.
        ledger.change(ACTIVATIONS, bias if has_bias else 0)
        for end in reversed(self.ends):
            inner = self._feed_forward(end)
            ledger.change(ACTIVATIONS, self.recomputed(end) - projected)
            # The gradient of the activation's output; then that of the attention weights. (On a CPU, what an operation
            # was the last to read may be freed only while the next one runs: then it is twice as much.)
            ledger.briefly(ACTIVATIONS, self._activation(end))
            ledger.change(ACTIVATIONS, -inner)
            ledger.change(ACTIVATIONS, projected)
            ledger.briefly(ACTIVATIONS, projected + self._scores(self._stored) * self._operand // FLOAT)
            ledger.change(GRADIENTS, self.layer_weights * FLOAT)
            ledger.change(ACTIVATIONS, inner - self.recomputed(end) - self.kept_layer(end))
        ledger.change(ACTIVATIONS, -bias)
        if has_bias:
            ledger.change(ACTIVATIONS, -bias - self._distances)

    def _backward(self, ledger: Ledger) -> None:
        scores = self._scores(0 if self.fuses_attention else self.context) * self._operand // FLOAT
        has_bias = self.model.use_relative_position
        # Without dropout, the scores have gradients before and after the softmax beside what is kept; with dropout,
        # these take the place of what its backward pass has read.
        score_gradients = 0 if self.model.attention_probs_dropout_prob else 2 * scores
        for end in reversed(self.ends):
            inner = self._feed_forward(end)
            # Both sides of the activation have a gradient; then they and their gradients are freed.
            ledger.briefly(ACTIVATIONS, 2 * self._activation(end))
            ledger.change(ACTIVATIONS, -inner)
            ledger.briefly(ACTIVATIONS, score_gradients)
            ledger.change(GRADIENTS, self.layer_weights * FLOAT)
            if end < self.rows:
                # The gradients of the rows before they were selected, after the attention and of the layer's input.
                ledger.briefly(ACTIVATIONS, 2 * self.context * self.model.hidden_size * FLOAT)
            ledger.change(ACTIVATIONS, inner - self.layer(end))
            if has_bias:
                # Each layer's gradient of the bias is kept until all of them are added up.
                ledger.change(ACTIVATIONS, self._bias)
        if has_bias:
            ledger.briefly(ACTIVATIONS, self._bias)
            ledger.change(ACTIVATIONS, -self.model.num_hidden_layers * self._bias)
            ledger.change(ACTIVATIONS, -self._distances)

    @property
    def _embeddings(self) -> int:
        """The bytes of the input and output of the embeddings' LayerNorm, and of the dropout mask."""
        return self.rows * self.model.embedding_size * (2 * FLOAT + (1 if self.model.hidden_dropout_prob else 0))

    @property
    def _distances(self) -> int:
        """The bytes of the one-hot rows of the product that looks up the bias."""
        return NUM_BUCKETS * self.slots**2 * FLOAT if self.model.use_relative_position else 0

    def _feed_forward(self, rows: int) -> int:
        """Return the bytes of the two sides of the activation in a layer's feed-forward network."""
        output = rows * self.model.feed_forward_size * HALF if self._rounds else self._activation(rows)
        return self._activation(rows) + output

    def _activation(self, rows: int) -> int:
        """Return the bytes of the activation's input, or of a gradient of one of its sides."""
        return rows * self.model.feed_forward_size * self._operand

    @property
    def _rounds(self) -> bool:
        """Whether only the factors of products are bfloat16, as on a CPU."""
        return self.fuses_attention and self.precision != "float32"

    @property
    def _operand(self) -> int:
        """The bytes per number of what products return."""
        return FLOAT if self._rounds or self.precision == "float32" else HALF

    @property
    def _stored(self) -> int:
        """The rows whose weights are stored."""
        return self.queries if self.fuses_attention else self.rows

    @property
    def _log_sums(self) -> int:
        """The bytes of the logarithms of the softmax's sums."""
        return self.context * self.model.num_attention_heads * FLOAT

    @property
    def _bias(self) -> int:
        """The bytes of the bias of the context's scores: of a sequence with fused attention, otherwise of the batch."""
        if not self.fuses_attention:
            return self._scores(self.context)
        return self._scores(self.slots) if self.model.use_relative_position else 0

    def _scores(self, rows: int) -> int:
        """Return the bytes of the scores of some rows for the context's L keys in all heads."""
        return rows * self.slots * self.model.num_attention_heads * FLOAT
