"""Fine-tune a BERT with Hugging Face transformers on the batches of fine_tuning.py, and predict.

It runs in an interpreter of its own, with torch and transformers, and imports nothing of this project but small modules
of this folder: `python -m tests.benchmarks.fine_tuning_torch BERT BATCHES.npz MODE`, where MODE is one of TORCH_MODES.
It prints one line of JSON. Models, heads and losses are those of transformers, the optimizer is that of its Trainer.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
import transformers

from tests.benchmarks.batch_file import read_batches
from tests.benchmarks.measure import cpu_sum, times_of
from tests.benchmarks.torch_modes import computing, multiplies_in_bfloat16

LEARNING_RATE, WEIGHT_DECAY, CLIP_NORM = 1e-4, 0.01, 1.0


def load_model(folder: str, head: dict[str, torch.Tensor], is_span: bool) -> Any:
    """Return the model with a given output layer: "weight" [hidden, width] and "bias"."""
    known = transformers.BertForQuestionAnswering if is_span else transformers.BertForSequenceClassification
    model = known.from_pretrained(folder, num_labels=len(head["bias"]), dtype=torch.float32)
    layer = model.qa_outputs if is_span else model.classifier
    with torch.no_grad():
        layer.weight.copy_(head["weight"].T)
        layer.bias.copy_(head["bias"])
    return model


def scores_of(model: Any, batch: dict[str, torch.Tensor], mode: str) -> torch.Tensor:
    """Return the scores of a batch, as this project orders them: [units, width]."""
    slots = batch.get("slots")
    with torch.inference_mode(), computing(mode):
        output = model(**{name: values for name, values in batch.items() if name != "slots"})
    if slots is None:
        return output.logits.float()
    return torch.stack([output.start_logits, output.end_logits], -1).float().flatten(0, 1)[slots]


def main() -> None:
    """Run the command line."""
    folder, path, mode = sys.argv[1:]
    torch.manual_seed(1)
    # It would list the output layer as missing, which is set afterwards.
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    parts = {
        part: [{name: torch.from_numpy(array) for name, array in batch.items()} for batch in batches]
        for part, batches in read_batches(Path(path)).items()
    }
    model = load_model(folder, parts["head"][0], "start_positions" in parts["train"][0])
    model.eval()
    scores: list[torch.Tensor] = []
    predicted = times_of(lambda batch: scores.append(scores_of(model, batch, mode)), parts["dev"])
    pairs = zip(parts["scores"], scores, strict=True)
    difference = max((ours["scores"] - theirs).abs().max().item() for ours, theirs in pairs)

    decayed = [value for value in model.parameters() if value.ndim > 1]
    others = [value for value in model.parameters() if value.ndim == 1]
    groups = [{"params": decayed, "weight_decay": WEIGHT_DECAY}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, LEARNING_RATE, fused=True)
    model.train()

    def update(batch: dict[str, torch.Tensor]) -> None:
        with computing(mode):
            loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
        optimizer.step()
        optimizer.zero_grad()

    updated = times_of(update, parts["train"])
    seconds = {"first": updated[0][1], "updates": cpu_sum(updated[1:]), "prediction": cpu_sum(predicted[1:])}
    print(json.dumps({**seconds, "difference": difference, "bfloat16": multiplies_in_bfloat16(mode)}))


if __name__ == "__main__":
    main()
