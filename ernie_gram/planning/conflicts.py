"""Find settings that are valid but do not fit each other or the cluster, and describe each in one line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ernie_gram.planning.encoder_memory import size_text
from ernie_gram.planning.prediction import Cluster, Prediction, fitting_sequences
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.sizes import CorpusSizes

# Tensor cores multiply tiles; a size that is no multiple of this many numbers is computed by slower kernels.
TILE = 8
MAX_PADDING = 0.25
# Share of the training time that evaluations may take.
MAX_EVALUATION = 0.05
# Hours of work that a failure may lose.
MAX_LOST_HOURS = 6.0


def conflicts(
    config: PretrainConfig, sizes: CorpusSizes, prediction: Prediction, cluster: Cluster, free_disk: int
) -> list[str]:
    """Return one line `key: what is wrong, and what to do` for each problem.

    `free_disk` is the free space of paths.output in bytes.
    """
    return [
        *_batch(config, prediction, cluster),
        *_recompute(config, sizes, prediction, cluster),
        *_schedule(config, prediction),
        *_sequences(config, prediction, cluster),
        *_tiles(config, sizes, cluster),
        *_disk(prediction, free_disk),
    ]


def _batch(config: PretrainConfig, prediction: Prediction, cluster: Cluster) -> Iterator[str]:
    size, ranks = config.data.batch_size, cluster.ranks
    if size % ranks:
        yield (
            f"data.batch_size: {size} is not a multiple of {ranks} processes, so in each step most of them wait for "
            f"those with {-(-size // ranks)} sequences; give {size // ranks * ranks or ranks}"
        )
    held, fitting = prediction.shape.sequences, prediction.fitting
    if fitting is not None and fitting < held:
        advice = f"with trainer.micro_batch {fitting} it fits" if fitting else "not even one fits"
        yield (
            f"trainer.micro_batch: {held} sequences at a time need {size_text(prediction.memory.total)} of "
            f"{size_text(cluster.memory or 0)}; {advice}"
        )
    if fitting is not None and prediction.steps > 1 and fitting >= 2 * held:
        yield f"trainer.micro_batch: only {held} sequences at a time, where {fitting} fit and are computed faster"


def _recompute(config: PretrainConfig, sizes: CorpusSizes, prediction: Prediction, cluster: Cluster) -> Iterator[str]:
    """Yield a line if recompute would make the batch fit, or if it is on and the batch fits without it."""
    is_on, sequences = config.trainer.recompute, prediction.shape.sequences
    other = replace(config, trainer=replace(config.trainer, recompute=not is_on))
    fitting = fitting_sequences(other, sizes, prediction.shape, cluster)
    if fitting is None or prediction.fitting is None:
        return
    if is_on and fitting >= sequences:
        share = prediction.flops["recompute"] / sum(prediction.flops.values())
        yield (
            f"trainer.recompute: takes {share:.0%} of the operations of a step, but {sequences} sequences per process "
            "fit without it; set it to false"
        )
    if not is_on and prediction.fitting < sequences and fitting > prediction.fitting:
        yield f"trainer.recompute: set to true, {fitting} sequences per process would fit"


def _schedule(config: PretrainConfig, prediction: Prediction) -> Iterator[str]:
    trainer, optimizer = config.trainer, config.optimizer
    if optimizer.warmup_steps >= trainer.max_steps:
        yield (
            f"optimizer.warmup_steps: {optimizer.warmup_steps:,} steps are not over when the training ends after "
            f"{trainer.max_steps:,}; the learning rate never reaches {optimizer.learning_rate:g}"
        )
    if config.paths.held_out is None:
        yield "paths.held_out: not given, so nothing shows whether the model improves on text it has not seen"
    else:
        if trainer.eval_every > trainer.max_steps:
            yield (
                f"trainer.eval_every: {trainer.eval_every:,} is beyond the {trainer.max_steps:,} steps, so only the "
                "first and the last model are evaluated"
            )
        share = prediction.evaluation / (prediction.step * trainer.eval_every)
        if share > MAX_EVALUATION:
            yield (
                f"trainer.eval_every: an evaluation takes {prediction.evaluation:,.0f} s after every "
                f"{prediction.step * trainer.eval_every:,.0f} s of training; raise it, or lower trainer.eval_sequences"
            )
    hours = min(trainer.save_every, trainer.max_steps) * prediction.step / 3600
    if hours > MAX_LOST_HOURS:
        yield f"trainer.save_every: {hours:,.0f} hours lie between checkpoints, which a failure would lose"
    if trainer.keep_checkpoints == 1 and trainer.max_steps > trainer.save_every:
        yield "trainer.keep_checkpoints: with 1, there is no other checkpoint if the last one is damaged; keep 2"


def _sequences(config: PretrainConfig, prediction: Prediction, cluster: Cluster) -> Iterator[str]:
    data, model, padding = config.data, config.model, prediction.shape.computed(cluster.cpu).padding
    if padding > MAX_PADDING:
        advice = "a shorter data.max_seq_len" if data.pack_documents else "data.pack_documents true"
        yield f"data.max_seq_len: {padding:.0%} of the slots of a batch are padding; set {advice}"
    if config.paths.start is None and data.max_seq_len < model.max_position_embeddings:
        yield (
            f"model.max_position_embeddings: positions beyond data.max_seq_len {data.max_seq_len} are never trained; "
            f"{model.max_position_embeddings} are created"
        )


def _tiles(config: PretrainConfig, sizes: CorpusSizes, cluster: Cluster) -> Iterator[str]:
    """Yield sizes that tensor cores compute slowly; on a CPU they do not matter."""
    if cluster.cpu or config.trainer.device == "cpu":
        return
    model, classes = config.model, sizes.classes(config)
    if classes % TILE:
        how = "number of n-grams (ernie-gram lexicon --top)" if config.objective.is_explicit else "vocabulary"
        yield (
            f"paths.corpus: {classes:,} classes are not a multiple of {TILE}, which GPUs with tensor cores compute "
            f"slowly; change the {how} by {-classes % TILE} more or {classes % TILE} fewer"
        )
    widths = {
        "model.hidden_size": model.hidden_size,
        "model.hidden_size per head": model.hidden_size // model.num_attention_heads,
        "model.intermediate_size": model.feed_forward_size,
        "model.out_emb_size": model.out_emb_size,
    }
    if config.objective.has_generator:
        widths["generator.num_attention_heads"] = config.generator.model(model).hidden_size
    for key, width in widths.items():
        if width % TILE:
            yield f"{key}: a width of {width} is not a multiple of {TILE}, which GPUs with tensor cores compute slowly"


def _disk(prediction: Prediction, free_disk: int) -> Iterator[str]:
    if prediction.disk > free_disk:
        yield (
            f"paths.output: the checkpoints take up to {size_text(prediction.disk)}, but only "
            f"{size_text(free_disk)} are free; lower trainer.keep_checkpoints, or choose another disk"
        )
