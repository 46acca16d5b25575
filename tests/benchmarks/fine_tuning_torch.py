"""Fine-tune a BERT with Hugging Face transformers, as fine_tuning.py does with ours.

It runs in an interpreter of its own, with torch and transformers and nothing of this project:
`python fine_tuning_torch.py JOB.json RESULT.json`. The job has the examples and the settings, the result the
predictions and the seconds; with "output_layer_only", the result is the output layer before training. Model heads,
their losses and the tokenizer are those of transformers; batches have samples of similar length, as with its
`group_by_length`, and are padded to their longest sample.
"""

from __future__ import annotations

import json
import re
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

LAYER = re.compile(r"encoder\.layer\.(\d+)\.")
IGNORED = -100

Sample = dict[str, Any]
Settings = dict[str, Any]


class Sentences:
    """Classification and regression of texts and pairs."""

    def __init__(self, job: dict[str, Any], tokenizer: Any) -> None:
        self.job, self.tokenizer = job, tokenizer
        self.is_regression = job["kind"] == "regression"

    def model(self, folder: str) -> Any:
        """Return the model with a new head."""
        labels = 1 if self.is_regression else len(self.job["labels"])
        return transformers.AutoModelForSequenceClassification.from_pretrained(folder, num_labels=labels)

    def encode(self, examples: list[Sample], training: bool) -> list[Sample]:
        """Return the samples."""
        firsts, seconds = ([example.get(key) for example in examples] for key in ("text_a", "text_b"))
        pairs = (firsts,) if seconds[0] is None else (firsts, seconds)
        limit = self.job["settings"]["max_seq_len"]
        encoded = self.tokenizer(*pairs, truncation="longest_first", max_length=limit)
        samples = [{"ids": i, "types": t} for i, t in zip(encoded.input_ids, encoded.token_type_ids, strict=True)]
        if training:
            for sample, example in zip(samples, examples, strict=True):
                label = example["label"]
                sample["labels"] = label if self.is_regression else self.job["labels"].index(label)
        return samples

    def labels(self, samples: list[Sample], width: int) -> dict[str, torch.Tensor]:
        """Return the gold values of a batch as the model takes them."""
        dtype = torch.float32 if self.is_regression else torch.int64
        return {"labels": torch.tensor([sample["labels"] for sample in samples], dtype=dtype)}

    def decode(self, outputs: list[np.ndarray], samples: list[Sample], examples: list[Sample]) -> list[Any]:
        """Return the predictions of all examples."""
        if self.is_regression:
            return [float(output[0][0]) for output in outputs]
        return [self.job["labels"][int(output[0].argmax())] for output in outputs]


class Tagging:
    """Tags of words; the first token of a word has its tag. Words that do not fit are predicted O."""

    def __init__(self, job: dict[str, Any], tokenizer: Any) -> None:
        self.job, self.tokenizer = job, tokenizer

    def model(self, folder: str) -> Any:
        """Return the model with a new head."""
        labels = len(self.job["labels"])
        return transformers.AutoModelForTokenClassification.from_pretrained(folder, num_labels=labels)

    def encode(self, examples: list[Sample], training: bool) -> list[Sample]:
        """Return the samples."""
        words = [example["tokens"] for example in examples]
        limit = self.job["settings"]["max_seq_len"]
        encoded = self.tokenizer(words, is_split_into_words=True, truncation=True, max_length=limit)
        samples = []
        for i, example in enumerate(examples):
            word_ids = encoded.word_ids(i)
            firsts = [n for n, word in enumerate(word_ids) if word is not None and word_ids[n - 1] != word]
            sample = {"ids": encoded.input_ids[i], "types": encoded.token_type_ids[i]}
            sample["firsts"], sample["words"] = firsts, [word_ids[n] for n in firsts]
            if training:
                sample["labels"] = [self.job["labels"].index(example["tags"][word]) for word in sample["words"]]
            samples.append(sample)
        return samples

    def labels(self, samples: list[Sample], width: int) -> dict[str, torch.Tensor]:
        """Return the gold values of a batch as the model takes them."""
        labels = torch.full((len(samples), width), IGNORED)
        for row, sample in zip(labels, samples, strict=True):
            row[sample["firsts"]] = torch.tensor(sample["labels"])
        return {"labels": labels}

    def decode(self, outputs: list[np.ndarray], samples: list[Sample], examples: list[Sample]) -> list[Any]:
        """Return the predictions of all examples."""
        predictions = []
        for output, sample, example in zip(outputs, samples, examples, strict=True):
            tags = ["O"] * len(example["tokens"])
            best = output[0].argmax(-1)
            for first, word in zip(sample["firsts"], sample["words"], strict=True):
                tags[word] = self.job["labels"][int(best[first])]
            predictions.append(tags)
        return predictions


class Span:
    """Answers in a context, which is read in windows; each window is a sample."""

    def __init__(self, job: dict[str, Any], tokenizer: Any) -> None:
        self.job, self.tokenizer = job, tokenizer

    def model(self, folder: str) -> Any:
        """Return the model with a new head."""
        return transformers.AutoModelForQuestionAnswering.from_pretrained(folder)

    def encode(self, examples: list[Sample], training: bool) -> list[Sample]:
        """Return the samples."""
        return [sample for i, example in enumerate(examples) for sample in self._windows(i, example, training)]

    def _windows(self, index: int, example: Sample, training: bool) -> list[Sample]:
        settings = self.job["settings"]
        question, limit = example["question"], settings["max_query_len"]
        tokens = self.tokenizer(question, add_special_tokens=False, return_offsets_mapping=True)
        if len(tokens.input_ids) > limit:
            question = question[: tokens.offset_mapping[limit - 1][1]]
        # The windows begin doc_stride tokens apart; transformers' stride is their overlap.
        room = settings["max_seq_len"] - 3 - min(limit, len(tokens.input_ids))
        encoded = self.tokenizer(
            question,
            example["context"],
            truncation="only_second",
            max_length=settings["max_seq_len"],
            stride=max(0, room - settings["doc_stride"]),
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        samples = []
        for i, ids in enumerate(encoded.input_ids):
            slots = [n for n, part in enumerate(encoded.sequence_ids(i)) if part == 1]
            offsets = encoded.offset_mapping[i]
            sample = {"ids": ids, "types": encoded.token_type_ids[i], "example": index, "slots": slots}
            sample["offsets"] = offsets
            if training:
                start, stop = example["start"], example["start"] + len(example["answer"])
                inside = [n for n in slots if offsets[n][0] < stop and offsets[n][1] > start]
                fits = bool(inside) and offsets[slots[0]][0] <= start and offsets[slots[-1]][1] >= stop
                sample["labels"] = (inside[0], inside[-1]) if fits else (0, 0)
            samples.append(sample)
        return samples

    def labels(self, samples: list[Sample], width: int) -> dict[str, torch.Tensor]:
        """Return the gold values of a batch as the model takes them."""
        starts, ends = torch.tensor([sample["labels"] for sample in samples]).T
        return {"start_positions": starts, "end_positions": ends}

    def decode(self, outputs: list[np.ndarray], samples: list[Sample], examples: list[Sample]) -> list[Any]:
        """Return the predictions of all examples."""
        settings = self.job["settings"]
        best: dict[int, tuple[float, str]] = defaultdict(lambda: (-np.inf, ""))
        for (starts, ends), sample in zip(outputs, samples, strict=True):
            slots, offsets = np.array(sample["slots"], int), sample["offsets"]
            context = examples[sample["example"]]["context"]
            for first in slots[np.argsort(-starts[slots], kind="stable")[: settings["n_best"]]]:
                for last in slots[np.argsort(-ends[slots], kind="stable")[: settings["n_best"]]]:
                    if first <= last < first + settings["max_answer_length"]:
                        text = context[offsets[first][0] : offsets[last][1]]
                        best[sample["example"]] = max(
                            best[sample["example"]], (float(starts[first] + ends[last]), text)
                        )
        return [best[i][1] for i in range(len(examples))]


KINDS = {"classification": Sentences, "regression": Sentences, "tagging": Tagging, "span": Span}


def collate(samples: list[Sample], pad: int) -> dict[str, torch.Tensor]:
    """Return the inputs of a batch, padded to the longest."""
    width = max(len(sample["ids"]) for sample in samples)
    batch = {"input_ids": torch.full((len(samples), width), pad)}
    batch |= {
        name: torch.zeros((len(samples), width), dtype=torch.int64) for name in ("token_type_ids", "attention_mask")
    }
    for i, sample in enumerate(samples):
        length = len(sample["ids"])
        batch["input_ids"][i, :length] = torch.tensor(sample["ids"])
        batch["token_type_ids"][i, :length] = torch.tensor(sample["types"])
        batch["attention_mask"][i, :length] = 1
    return batch


def epoch_batches(lengths: np.ndarray, size: int, length_pool: int, seed: int, epoch: int) -> list[np.ndarray]:
    """Return the samples of each batch of an epoch: random pools, sorted by length, cut into batches."""
    random = np.random.default_rng([seed, epoch])
    order = random.permutation(len(lengths))
    batches: list[np.ndarray] = []
    for first in range(0, len(order), length_pool * size):
        pool = order[first : first + length_pool * size]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += [pool[i : i + size] for i in range(0, len(pool), size)]
    return [batches[i] for i in random.permutation(len(batches))]


def parameter_groups(model: Any, settings: Settings) -> list[dict[str, Any]]:
    """Return AdamW's groups: no decay of LayerNorm and biases, and the learning rate of each layer."""
    layers, decay = model.config.num_hidden_layers, settings["layer_decay"]
    groups: dict[tuple[float, float], list[torch.nn.Parameter]] = defaultdict(list)
    for name, parameter in model.named_parameters():
        layer = LAYER.search(name)
        power = layers - int(layer[1]) if layer else layers + 1 if "embeddings" in name else 0
        is_decayed = not (name.endswith("bias") or "LayerNorm" in name)
        groups[decay**power, settings["weight_decay"] * is_decayed].append(parameter)
    rate = settings["learning_rate"]
    return [{"params": found, "lr": rate * factor, "weight_decay": wd} for (factor, wd), found in groups.items()]


def factor_at(step: int, total: int, warmup: int) -> float:
    """Return the factor of the learning rate of update `step`, from 0: linear warm-up and decay, as ours."""
    return (step + 1) / warmup if step < warmup else max(0, total - step) / (total - warmup)


def batches_of(samples: list[Sample], settings: Settings) -> Iterator[np.ndarray]:
    """Yield the samples of each batch of all epochs."""
    lengths = np.array([len(sample["ids"]) for sample in samples])
    for epoch in range(settings["epochs"]):
        yield from epoch_batches(lengths, settings["batch_size"], settings["length_pool"], settings["seed"], epoch)


def train(
    model: Any, kind: Any, samples: list[Sample], batches: Iterable[Sequence[int]], settings: Settings, pad: int
) -> list[float]:
    """Train on these batches; return the loss of each step."""
    total = settings["epochs"] * -(-len(samples) // settings["batch_size"])
    betas = (settings["beta1"], settings["beta2"])
    optimizer = torch.optim.AdamW(parameter_groups(model, settings), betas=betas, eps=settings["epsilon"])
    warmup = int(settings["warmup_share"] * total)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: factor_at(step, total, warmup))
    model.train()
    losses = []
    for indices in batches:
        chosen = [samples[i] for i in indices]
        batch = collate(chosen, pad)
        loss = model(**batch, **kind.labels(chosen, batch["input_ids"].shape[1])).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings["max_grad_norm"])
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def output_layer(model: Any) -> Any:
    """Return the layer that is not pre-trained."""
    return getattr(model, "qa_outputs", None) or model.classifier


def remove_chance(model: Any, head: dict[str, list[Any]]) -> None:
    """Switch dropout off, and set the output layer, so that a training can be repeated by another program."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    with torch.no_grad():
        for name, values in head.items():
            getattr(output_layer(model), name).copy_(torch.tensor(values))


def predict(model: Any, samples: list[Sample], size: int, pad: int) -> list[Any]:
    """Return the model's outputs for each sample, a tuple of arrays."""
    model.eval()
    outputs: list[Any] = [None] * len(samples)
    order = np.argsort([len(sample["ids"]) for sample in samples], kind="stable")
    with torch.inference_mode():
        for first in range(0, len(order), size):
            indices = order[first : first + size]
            found = model(**collate([samples[i] for i in indices], pad)).to_tuple()
            for row, i in enumerate(indices):
                outputs[i] = tuple(array[row].numpy() for array in found)
    return outputs


def main() -> None:
    """Run the command line."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    settings = job["settings"]
    torch.set_num_threads(settings["threads"])
    torch.manual_seed(settings["seed"])
    tokenizer = transformers.AutoTokenizer.from_pretrained(job["model"])
    kind = KINDS[job["kind"]](job, tokenizer)
    model = kind.model(job["model"])
    if job.get("output_layer_only"):
        layer = {name: values.tolist() for name, values in output_layer(model).state_dict().items()}
        Path(sys.argv[2]).write_text(json.dumps(layer), encoding="utf-8")
        return
    if "head" in job:
        remove_chance(model, job["head"])
    began = time.perf_counter()
    samples = kind.encode(job["train"], True)
    encoded, processor = time.perf_counter(), time.process_time()
    batches = job.get("batches") or batches_of(samples, settings)
    losses = train(model, kind, samples, batches, settings, tokenizer.pad_token_id)
    trained, processor = time.perf_counter(), time.process_time() - processor
    dev = kind.encode(job["dev"], False)
    encoded_dev, processor_dev = time.perf_counter(), time.process_time()
    predictions = kind.decode(predict(model, dev, settings["eval_batch_size"], tokenizer.pad_token_id), dev, job["dev"])
    result = {
        "predictions": predictions,
        "steps": len(losses),
        "losses": losses,
        "samples": len(samples),
        "seconds": {
            "encoding": encoded - began + encoded_dev - trained,
            "training": trained - encoded,
            "training processor": processor,
            "prediction": time.perf_counter() - encoded_dev,
            "prediction processor": time.process_time() - processor_dev,
        },
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "versions": f"torch {torch.__version__}, transformers {transformers.__version__}",
    }
    Path(sys.argv[2]).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main()
