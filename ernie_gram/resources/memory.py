"""Predict the memory of a process in a training step from the sizes of its tensors.

The activations of a layer are counted as by Korthikanti et al. (2022), "Reducing activation recomputation in large
transformer models", section 4. There all numbers have two bytes; here it depends on the precision, and on a CPU no
attention scores are stored (kernels/attention.py). Not included are the process itself (0.4 GB on a CPU), memory that
the allocator keeps, and a GPU's context and workspaces.
"""

from __future__ import annotations

from dataclasses import dataclass

from ernie_gram.model.config import NUM_BUCKETS, ModelConfig
from ernie_gram.model.parameters import count
from ernie_gram.pretraining.chunked_softmax import CHUNK_BYTES
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.network import parameter_shapes
from ernie_gram.pretraining.sizes import BatchShape, CorpusSizes
from ernie_gram.pretraining.terms.catalog import wanted_rows

FLOAT, HALF = 4, 2
Bytes = dict[str, float]


def step_memory(config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape, cpu: bool, steps: int = 1) -> Bytes:
    """Return the bytes of a process on a CPU or a GPU, by part, at the moment when their sum is largest.

    The backward pass frees activations and adds gradients, so that moment is its beginning or the update after it.

    Args:
        shape: of the batch that the process holds at a time, in each of `steps` micro-batches of a step.
    """
    parameters = FLOAT * count(parameter_shapes(config, sizes))
    always: Bytes = {"parameters": parameters, "Adam's moments": 2 * parameters}
    if steps > 1:
        always["accumulated gradients"] = parameters
    objective, computed = config.objective, shape.computed(cpu)
    encoders = [_Encoder(config, config.model, computed, shape.query_rows, wanted_rows(objective, computed), cpu)]
    if objective.has_generator:
        small = config.generator.model(config.model)
        encoders.append(_Encoder(config, small, computed, 0, shape.predicted_rows, cpu))
    activations, again = sum(each.kept for each in encoders), sum(each.again for each in encoders)
    if objective.rtd_weight:
        # Input and output of the activation in the head that detects replaced tokens.
        activations += 2 * FLOAT * computed.rows * config.model.hidden_size
    softmax, logits = _softmax(config, sizes, shape, cpu)
    # The logits are freed before a layer is computed again.
    activations, softmax = (activations + again, softmax) if again > logits else (activations, softmax + logits)
    if activations + softmax < parameters:
        return always | {"gradients": parameters}
    return always | {"activations": activations, "softmax over classes": softmax}


def _softmax(config: PretrainConfig, sizes: CorpusSizes, shape: BatchShape, cpu: bool) -> tuple[float, float]:
    """Return the bytes that softmaxes over classes keep, and those while one is computed (see chunked_softmax.py).

    Kept are the gradients of their tables, and three tensors of their rows. Computed are the logits of a chunk; and in
    several operations, copies of the tables, and a copy for products in half precision on a GPU, or later a table's
    gradient.
    """
    objective, model = config.objective, config.model
    heads = [(shape.predicted_rows, sizes.classes(config))] * (2 if objective.has_generator else 1)
    if objective.has_queries:
        heads.append((shape.fine_rows, sizes.tokens))
    width = FLOAT * (model.out_emb_size or model.embedding_size)
    tables, rows = width * sum(classes for _, classes in heads), 3 * width * sum(rows for rows, _ in heads)
    logits = max(min(FLOAT * rows * classes, CHUNK_BYTES) for rows, classes in heads)
    if cpu and config.optimizer.precision == "float32":
        return tables + rows, logits
    is_copied = not cpu and config.optimizer.precision != "float32"
    largest = width * max(classes for _, classes in heads)
    return tables + rows, tables + max(logits * (1 + HALF / FLOAT * is_copied), largest)


@dataclass(frozen=True)
class _Encoder:
    """An encoder of a run: its context as far as it is computed, its query rows, and the rows that it returns.

    The last layer computes only the returned rows after its attention.
    """

    config: PretrainConfig
    model: ModelConfig
    context: BatchShape
    queries: int
    wanted: int
    cpu: bool

    @property
    def kept(self) -> float:
        """The bytes that are kept for the backward pass."""
        model, rows = self.model, self.context.rows + self.queries
        # Input, output and mask of the embeddings, and one-hot rows, by which the bias of the scores is looked up.
        embeddings = rows * model.embedding_size * (2 * FLOAT + 1)
        distances = FLOAT * NUM_BUCKETS * self.context.slots**2 if model.use_relative_position else 0
        layer = self._inputs if self.config.trainer.recompute else self._layer
        return embeddings + distances + (model.num_hidden_layers - 1) * layer(rows) + layer(self.wanted + self.queries)

    @property
    def again(self) -> float:
        """The bytes of a layer that is computed again, with gradients of its activation, the scores' bias and its own.

        0 without recompute.
        """
        rows = self.context.rows + self.queries
        gradients = 2 * FLOAT * (rows * self.model.feed_forward_size + self._scores)
        return self._layer(rows) - self._inputs(rows) + gradients if self.config.trainer.recompute else 0.0

    @property
    def _scores(self) -> int:
        """The number of attention scores that a layer stores: none on a CPU."""
        rows = self.queries + self.context.rows
        return 0 if self.cpu else rows * self.context.slots * self.model.num_attention_heads

    def _layer(self, end: int) -> float:
        """Return the bytes that a layer with `end` rows after its attention keeps.

        Per row, of hidden size H and inner size I: query, key, value and the attention's sum (4 H); input and output of
        both LayerNorms (4 H) and both sides of the activation (2 I), and masks of dropout (2 H bytes). Per score: the
        softmax, and with dropout its output and mask. In half precision, LayerNorms stay float32, and there are copies
        of the weights and of what LayerNorms return. A CPU keeps float32, and no masks.
        """
        size, inner = self.model.hidden_size, self.model.feed_forward_size
        is_half = self.config.optimizer.precision != "float32" and not self.cpu
        number, normed = (HALF, FLOAT + HALF) if is_half else (FLOAT, FLOAT)
        per_row = size * (2 * FLOAT + 2 * normed + self._masks) + inner * 2 * number
        per_score = number + (number + 1 if self.model.attention_probs_dropout_prob else 0)
        projected = 4 * (self.context.rows + self.queries)
        weights = HALF * (4 * size + 2 * inner) * size if is_half else 0
        return number * projected * size + end * per_row + self._scores * per_score + weights

    @property
    def _masks(self) -> int:
        """The bytes of masks for each row and unit of a layer's results: a CPU draws them again."""
        return 0 if self.cpu else 2

    def _inputs(self, end: int) -> float:
        """Return the bytes that a layer keeps with recompute: its output, all masks, and on a CPU the attention."""
        attention = FLOAT * (self.context.rows + self.queries) if self.cpu else 0
        masks = self._scores if self.model.attention_probs_dropout_prob else 0
        return self.model.hidden_size * (end * (FLOAT + self._masks) + attention) + masks
