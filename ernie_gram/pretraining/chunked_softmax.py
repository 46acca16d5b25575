"""A softmax over very many classes that never holds all logits in memory.

The rows are processed in chunks. The logits of a chunk give its losses, its samples and its gradients in one pass, and
are freed before the next chunk's logits are computed (operations run one by one, see distributed.world.start_world).
This takes three matrix products, as many as the ordinary softmax with its backward pass.

Why gradients are computed in the forward pass: Paddle would keep what the backward pass of every chunk needs, which is
the softmax of all rows. So the gradients are computed by hand, while the chunk is in memory, and attached to the loss
(see `_with_gradients`).

On a CPU one operation does all this in float32, see kernels/classes.py.

Shape letters: M rows, m rows of a chunk, O output size, C classes, G blocks of S classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import paddle
from paddle.nn import functional as F

from ernie_gram.graph import cast, fuses, network, up_to_multiple
from ernie_gram.kernels import classes, operations

# Approximate memory of a chunk's logits, in bytes. The logits with bias, the softmax and the sampling each take about
# the same again. With smaller chunks the gradient of the table is added up more often; larger chunks save little time.
CHUNK_BYTES = 256 << 20

# Number of blocks of adjacent classes for sampling, see `_sample`.
BLOCKS = 32


@dataclass(frozen=True)
class LazyLogits:
    """Logits x T^T + b that are not computed yet: x [M, O], T [C, O] in parts that follow each other, b [C]."""

    x: paddle.Tensor
    tables: tuple[paddle.Tensor, ...]
    bias: paddle.Tensor

    @property
    def table(self) -> paddle.Tensor:
        """T."""
        return self.tables[0] if len(self.tables) == 1 else paddle.concat(list(self.tables))

    @property
    def classes(self) -> int:
        """The number of classes, C."""
        return int(self.bias.shape[0])

    def constant(self, dtype: paddle.dtype = paddle.float32) -> LazyLogits:
        """Return the same numbers without gradients; x and T in `dtype`, for their products."""
        x, table = (cast(cast(value, paddle.float32).detach(), dtype) for value in (self.x, self.table))
        return LazyLogits(x, (table,), self.bias.detach())


@dataclass(frozen=True)
class SoftmaxOptions:
    """How the softmaxes over the classes are computed.

    Attributes:
        train: whether gradients are needed.
        rows: approximate number of rows, which decides the number of chunks.
    """

    train: bool
    rows: int

    def cross_entropy(
        self, logits: LazyLogits, labels: paddle.Tensor, temperature: float | None = None
    ) -> CrossEntropy:
        """Return the cross entropy of some rows, and one sample per row if a temperature is given.

        The products are in the precision of `computing`.

        In float16 a probability below 3e-8 counts as 0 in gradients.
        """
        chunks = max(1, -(-self.rows * logits.classes * 4 // CHUNK_BYTES))
        if fuses():
            return fused_cross_entropy(logits, labels, -(-self.rows // chunks), self.train, temperature)
        return cross_entropy(logits, labels, chunks, self.train, temperature, network().casts.dtype)


@dataclass(frozen=True)
class CrossEntropy:
    """The result of `cross_entropy`.

    Attributes:
        total: sum of the rows' losses, a scalar; gradients flow through it.
        row_loss: -log p(label) of each row, float32 [M], without gradients.
        row_best: the class with the largest logit of each row, int64 [M].
        sampled: a class drawn from each row's distribution, int64 [M]; None unless asked for.
    """

    total: paddle.Tensor
    row_loss: paddle.Tensor
    row_best: paddle.Tensor
    sampled: paddle.Tensor | None


def fused_cross_entropy(
    logits: LazyLogits, labels_M: paddle.Tensor, rows: int, train: bool, temperature: float | None = None
) -> CrossEntropy:
    """Compute what `cross_entropy` does in one operation on a CPU, with the logits of so many rows in memory."""
    values = (logits.x, logits.bias, *logits.tables)
    x, bias, *tables = (value.detach() for value in values)
    loss, best, sampled, gradients = classes.cross_entropy(x, labels_M, bias, tables, temperature, rows, train)
    total = loss.sum()
    return CrossEntropy(operations.scaled_gradients(total, values, gradients) if train else total, loss, best, sampled)


def cross_entropy(
    logits: LazyLogits,
    labels_M: paddle.Tensor,
    chunks: int,
    train: bool,
    temperature: float | None = None,
    dtype: paddle.dtype = paddle.float32,
) -> CrossEntropy:
    """Compute -log softmax(logits)[label] of every row.

    Args:
        labels_M: int64 [M].
        chunks: number of chunks into which the rows are split.
        train: whether to compute gradients of the sum with respect to x, T and b.
        temperature: t of the distributions to draw from, which are proportional to p^(1/t); None draws nothing. No
            gradient flows through samples.
        dtype: of the operands of the large products, float32, bfloat16 or float16; sums and the softmax are float32.
    """
    # The parts of the table are joined once.
    logits = LazyLogits(logits.x, (logits.table,), logits.bias)
    fixed = logits.constant(dtype)
    (table,) = fixed.tables
    blocks_CG = None if temperature is None else _blocks(logits.classes)
    losses: list[paddle.Tensor] = []
    bests: list[paddle.Tensor] = []
    samples: list[paddle.Tensor] = []
    x_gradients: list[paddle.Tensor] = []
    table_gradient = bias_gradient = None
    for x_mO, labels_m, real_m in _split_into_chunks(fixed.x, labels_M, chunks):
        logits_mC = all_logits(LazyLogits(x_mO, fixed.tables, fixed.bias))
        best_m = logits_mC.argmax(-1)
        best_minus_label_m = _pick(logits_mC, best_m) - _pick(logits_mC, labels_m)
        # The logits are not read after this line, so Paddle writes the softmax into their memory.
        p_mC = F.softmax(logits_mC)
        # -log p(label) = (best logit - label's logit) - log p(best). p(best) is at least 1 / C, so its logarithm is
        # exact, and no second pass of exp and sum is needed.
        losses.append(best_minus_label_m - _pick(p_mC, best_m).log())
        bests.append(best_m)
        if temperature is not None and blocks_CG is not None:
            samples.append(_sample(p_mC if temperature == 1 else p_mC ** (1 / temperature), blocks_CG))
        if train:
            p_mC = cast(p_mC, x_mO.dtype)
            x_gradients.append(paddle.matmul(p_mC, table) - paddle.gather(table, labels_m))
            # Sums over rows and chunks are float32: in bfloat16, 256 + 1 is 256.
            chunk_table = cast(paddle.matmul(p_mC, x_mO, transpose_x=True), paddle.float32)
            chunk_bias = cast(paddle.matmul(real_m.astype(x_mO.dtype).unsqueeze(0), p_mC), paddle.float32)
            table_gradient = chunk_table if table_gradient is None else table_gradient + chunk_table
            bias_gradient = chunk_bias if bias_gradient is None else bias_gradient + chunk_bias
    rows = paddle.shape(labels_M)[0]
    row_loss, row_best = paddle.concat(losses)[:rows], paddle.concat(bests)[:rows]
    total = row_loss.sum()
    if train:
        assert table_gradient is not None
        assert bias_gradient is not None
        x_MO, ones = cast(fixed.x, paddle.float32), paddle.ones_like(labels_M).astype("float32")
        # So far the gradients are those of log Z; those of -(label's logit) are added here.
        gradients = LazyLogits(
            paddle.concat(x_gradients)[:rows],
            (paddle.index_add(table_gradient, labels_M, 0, -x_MO),),
            paddle.index_add(bias_gradient.flatten(), labels_M, 0, -ones),
        )
        total = _with_gradients(total, logits, gradients)
    return CrossEntropy(total, row_loss, row_best, paddle.concat(samples)[:rows] if samples else None)


def probabilities(logits: LazyLogits) -> paddle.Tensor:
    """Return softmax(logits) of all rows, float32 [M, C]."""
    return F.softmax(all_logits(logits.constant()))


def all_logits(logits: LazyLogits) -> paddle.Tensor:
    """Return x T^T + b of all rows, float32 [M, C]."""
    return cast(paddle.matmul(logits.x, logits.table, transpose_y=True), paddle.float32) + logits.bias


def _split_into_chunks(
    x_MO: paddle.Tensor, labels_M: paddle.Tensor, chunks: int
) -> list[tuple[paddle.Tensor, paddle.Tensor, paddle.Tensor]]:
    """Return rows, labels, and a mask with 1 for real rows, of chunks of equal size; padding rows are zeros."""
    real_M = paddle.ones_like(labels_M)
    if chunks == 1:
        return [(x_MO, labels_M, real_M)]
    rows = paddle.shape(labels_M)[0]
    missing = up_to_multiple(rows, chunks)
    zeros = paddle.zeros([missing], "int64")
    x = paddle.concat([x_MO, paddle.zeros([missing, x_MO.shape[1]], x_MO.dtype)]).reshape([chunks, -1, x_MO.shape[1]])
    labels, real = (paddle.concat([each, zeros]).reshape([chunks, -1]) for each in (labels_M, real_M))
    return [(x[i], labels[i], real[i]) for i in range(chunks)]


def _blocks(classes: int) -> paddle.Tensor:
    """Return the one-hot block of every class, float32 [C, G]."""
    size = -(-classes // BLOCKS)
    return F.one_hot(paddle.arange(classes) // size, -(-classes // size))


def _sample(p_mC: paddle.Tensor, blocks_CG: paddle.Tensor) -> paddle.Tensor:
    """Draw one class from each row of weights, int64 [m]: first a block of classes, then a class of the block.

    This way the only pass over all classes is a matrix product, and no cumulative sum is so long that the probability
    of a rare class is lost in rounding.
    """
    classes, blocks = blocks_CG.shape
    size = -(-classes // blocks)
    first_m1 = _sample_column(paddle.matmul(p_mC, blocks_CG)) * size
    within_mS = first_m1 + paddle.arange(size)
    p_mS = paddle.take_along_axis(p_mC, within_mS.clip(max=classes - 1), 1, broadcast=False)
    return (first_m1 + _sample_column(p_mS * (within_mS < classes).astype("float32"))).flatten()


def _sample_column(weights: paddle.Tensor) -> paddle.Tensor:
    """Draw a column of each row with the given weights, int64 [m, 1]."""
    # multinomial fails on NaN in the middle of the program, without naming the step. The trainer reports a NaN loss.
    weights = paddle.where(weights.isnan(), paddle.ones_like(weights), weights)
    return paddle.multinomial(weights, 1, replacement=True)


def _pick(values_mC: paddle.Tensor, classes_m: paddle.Tensor) -> paddle.Tensor:
    """Return values[i, classes[i]], [m]. (Paddle's index_sample would copy all values.)"""
    return paddle.take_along_axis(values_mC, classes_m.unsqueeze(1), 1, broadcast=False).flatten()


def _with_gradients(total: paddle.Tensor, logits: LazyLogits, gradients: LazyLogits) -> paddle.Tensor:
    """Return a scalar with the value of `total` and the given gradients with respect to x, T and b.

    This is a surrogate loss: s = sum over x, T and b of <value, gradient>, where the gradient is a constant, so that
    ds/dvalue is the gradient. The result is total + s - (the value of s): s cancels out, its derivative remains. The
    simpler form, Paddle's automatic backward pass, keeps the softmax of all rows in memory.
    """
    products = []
    for name in ("x", "table", "bias"):
        value, gradient = (cast(getattr(each, name), paddle.float32) for each in (logits, gradients))
        gradient.stop_gradient = True
        # The inner product as a matrix product of a row with a column: its backward pass is a product too, which is the
        # fastest operation on a CPU.
        products.append(paddle.matmul(value.reshape([1, -1]), gradient.reshape([-1, 1])).flatten())
    surrogate = reduce(paddle.add, products).sum()
    return total + (surrogate - surrogate.detach())
