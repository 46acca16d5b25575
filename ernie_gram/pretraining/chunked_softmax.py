"""A softmax over very many classes, without ever holding all of its scores.

Rows are taken in chunks. A chunk's scores give its losses, its samples and its gradients at once, and are dropped
before the next chunk's are made (see distributed.start: operations run one by one): three matrix products, as many as
with everything in memory, and nothing kept.

Shape letters: M rows, m rows of a chunk, O output size, C classes, G blocks of S classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import paddle
from paddle.nn import functional as F

# A chunk's scores take about this much memory, and as much again with the bias added, as a softmax, and for sampling.
# Smaller chunks add the gradient of the table up more often, larger ones gain little.
CHUNK_BYTES = 256 << 20

# Into how many blocks of neighbours the classes are cut for drawing.
BLOCKS = 32


@dataclass(frozen=True)
class Scores:
    """x T^T + b, not computed yet: x [M, O], T [C, O], b [C]."""

    x: paddle.Tensor
    table: paddle.Tensor
    bias: paddle.Tensor

    @property
    def classes(self) -> int:
        """C."""
        return int(self.bias.shape[0])

    def constant(self, dtype: paddle.dtype = paddle.float32) -> Scores:
        """The same numbers, from which no gradient flows back, the factors in a precision for their products."""
        x, table = (_as(_as(value, paddle.float32).detach(), dtype) for value in (self.x, self.table))
        return Scores(x, table, self.bias.detach())


def chunks_for(rows: int, classes: int) -> int:
    """How many chunks keep the scores of `rows` rows near CHUNK_BYTES each."""
    return max(1, -(-rows * classes * 4 // CHUNK_BYTES))


@dataclass(frozen=True)
class CrossEntropy:
    """What `cross_entropy` finds.

    Attributes:
        total: the sum of the rows' losses, a scalar; gradients flow through it.
        row_loss: -log p(label) of each row, float32 [M]; a constant.
        row_best: the likeliest class of each row, int64 [M].
        sampled: a class drawn from each row's distribution, int64 [M]; None unless asked for.
    """

    total: paddle.Tensor
    row_loss: paddle.Tensor
    row_best: paddle.Tensor
    sampled: paddle.Tensor | None


def cross_entropy(
    scores: Scores,
    labels_M: paddle.Tensor,
    chunks: int,
    train: bool,
    sample: bool = False,
    dtype: paddle.dtype = paddle.float32,
) -> CrossEntropy:
    """-log softmax(scores)[label] of every row.

    Args:
        labels_M: int64 [M].
        chunks: into how many the rows are cut.
        train: whether to compute gradients (of the sum, with regard to x, T and b).
        sample: also draw from the distributions (temperature 1), for which no gradient is defined.
        dtype: of the factors of the large products, float32 or bfloat16; sums and the softmax are float32.
    """
    with paddle.amp.auto_cast(enable=False):  # `dtype` decides, and the table is converted once, not for every chunk
        return _cross_entropy(scores, labels_M, chunks, train, sample, dtype)


def _cross_entropy(
    scores: Scores, labels_M: paddle.Tensor, chunks: int, train: bool, sample: bool, dtype: paddle.dtype
) -> CrossEntropy:
    fixed = scores.constant(dtype)
    x_chunks, label_chunks, real_chunks = _cut(fixed.x, labels_M, chunks)
    blocks_CG = _blocks(scores.classes) if sample else None
    losses: list[paddle.Tensor] = []
    bests: list[paddle.Tensor] = []
    samples: list[paddle.Tensor] = []
    x_gradients: list[paddle.Tensor] = []
    table_gradient = bias_gradient = None
    for x_mO, labels_m, real_m in zip(x_chunks, label_chunks, real_chunks, strict=True):
        logits_mC = _logits(Scores(x_mO, fixed.table, fixed.bias))
        best_m = logits_mC.argmax(-1)
        ahead_m = _pick(logits_mC, best_m) - _pick(logits_mC, labels_m)
        # The logits are not read again, so that Paddle puts the softmax in their place.
        p_mC = F.softmax(logits_mC)
        # log Z = the best score - the log of its probability, which is at least 1 / C: no second pass of exp and sum.
        losses.append(ahead_m - _pick(p_mC, best_m).log())
        bests.append(best_m)
        if blocks_CG is not None:
            samples.append(_draw(p_mC, blocks_CG))
        if train:
            p_mC = _as(p_mC, x_mO.dtype)
            x_gradients.append(paddle.matmul(p_mC, fixed.table) - paddle.gather(fixed.table, labels_m))
            # Sums over rows and chunks are float32: in bfloat16, 256 + 1 is 256.
            of_table = _as(paddle.matmul(p_mC, x_mO, transpose_x=True), paddle.float32)
            of_bias = _as(paddle.matmul(real_m.astype(x_mO.dtype).unsqueeze(0), p_mC), paddle.float32)
            table_gradient = of_table if table_gradient is None else table_gradient + of_table
            bias_gradient = of_bias if bias_gradient is None else bias_gradient + of_bias
    rows = paddle.shape(labels_M)[0]
    row_loss, row_best = paddle.concat(losses)[:rows], paddle.concat(bests)[:rows]
    total = row_loss.sum()
    if train:
        assert table_gradient is not None
        assert bias_gradient is not None
        x_MO, ones = _as(fixed.x, paddle.float32), paddle.ones_like(labels_M).astype("float32")
        gradients = Scores(
            paddle.concat(x_gradients)[:rows],
            paddle.index_add(table_gradient, labels_M, 0, -x_MO),
            paddle.index_add(bias_gradient.flatten(), labels_M, 0, -ones),
        )
        total = _with_gradients(total, scores, gradients)
    return CrossEntropy(total, row_loss, row_best, paddle.concat(samples)[:rows] if sample else None)


def probabilities(scores: Scores) -> paddle.Tensor:
    """All of softmax(scores), float32 [M, C]."""
    return F.softmax(_logits(scores.constant()))


def _logits(scores: Scores) -> paddle.Tensor:
    return _as(paddle.matmul(scores.x, scores.table, transpose_y=True), paddle.float32) + scores.bias


def _as(x: paddle.Tensor, dtype: paddle.dtype) -> paddle.Tensor:
    """x in another precision; Paddle would copy it even if it has that already."""
    return x if x.dtype == dtype else x.astype(dtype)


def _cut(
    x_MO: paddle.Tensor, labels_M: paddle.Tensor, chunks: int
) -> tuple[list[paddle.Tensor], list[paddle.Tensor], list[paddle.Tensor]]:
    """Rows, labels, and a 1 for every real row, in chunks of equal size: rows of zeros fill the last ones up."""
    real_M = paddle.ones_like(labels_M)
    if chunks == 1:
        return [x_MO], [labels_M], [real_M]
    rows = paddle.shape(labels_M)[0]
    missing = (chunks - rows % chunks) % chunks
    zeros = paddle.zeros([missing], "int64")
    x = paddle.concat([x_MO, paddle.zeros([missing, x_MO.shape[1]], x_MO.dtype)]).reshape([chunks, -1, x_MO.shape[1]])
    labels, real = (paddle.concat([each, zeros]).reshape([chunks, -1]) for each in (labels_M, real_M))
    return [x[i] for i in range(chunks)], [labels[i] for i in range(chunks)], [real[i] for i in range(chunks)]


def _blocks(classes: int) -> paddle.Tensor:
    """A 1 for the block every class is in, float32 [C, G]."""
    size = -(-classes // BLOCKS)
    return F.one_hot(paddle.arange(classes) // size, -(-classes // size))


def _draw(p_mC: paddle.Tensor, blocks_CG: paddle.Tensor) -> paddle.Tensor:
    """One class from each row of probabilities, int64 [m]: first a block of classes, then one of the block's.

    So every pass over all classes is a product, and no running sum is so long that rare classes are rounded away.
    """
    classes, blocks = blocks_CG.shape
    size = -(-classes // blocks)
    first_m1 = _draw_each(paddle.matmul(p_mC, blocks_CG)) * size
    within_mS = first_m1 + paddle.arange(size)
    p_mS = paddle.take_along_axis(p_mC, within_mS.clip(max=classes - 1), 1, broadcast=False)
    return (first_m1 + _draw_each(p_mS * (within_mS < classes).astype("float32"))).flatten()


def _draw_each(weights: paddle.Tensor) -> paddle.Tensor:
    """A column by the weights of each row, int64 [m, 1]."""
    # Drawing from NaN is an error in the middle of a program; the loss will tell of it where it can be explained.
    weights = paddle.where(weights.isnan(), paddle.ones_like(weights), weights)
    return paddle.multinomial(weights, 1, replacement=True)


def _pick(values_mC: paddle.Tensor, classes_m: paddle.Tensor) -> paddle.Tensor:
    """values[i, classes[i]], [m]; index_sample would copy all the values."""
    return paddle.take_along_axis(values_mC, classes_m.unsqueeze(1), 1, broadcast=False).flatten()


def _with_gradients(total: paddle.Tensor, scores: Scores, gradients: Scores) -> paddle.Tensor:
    """`total`, from which exactly these gradients flow back to x, T and b.

    The products below have the gradients as their derivatives; their values cancel out.
    """
    carried = []
    for name in ("x", "table", "bias"):
        value, gradient = (_as(getattr(each, name), paddle.float32) for each in (scores, gradients))
        gradient.stop_gradient = True
        # A product of one row with one column: its own gradient is a product as well, which the CPU does fastest.
        carried.append(paddle.matmul(value.reshape([1, -1]), gradient.reshape([-1, 1])).flatten())
    carrier = reduce(paddle.add, carried).sum()
    return total + (carrier - carrier.detach())
