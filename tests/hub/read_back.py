"""Read the models that PaddleNLP wrote in `check.py`: the outputs must be PaddleNLP's within 1e-5.

python -m tests.hub.read_back FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from ernie_gram.formats.paddlenlp import detect, read
from tests.support.model_folders import encoder_output_for

TOLERANCE = 1e-5


def largest_difference(folder: Path) -> float:
    """Return the largest difference between our outputs and PaddleNLP's over all slots that are no padding."""
    stored = np.load(folder.with_suffix(".npz"))
    ids, lengths, segments = (stored[name] for name in ("input_ids", "lengths", "token_type_ids"))
    assert detect(folder), folder
    model = read(folder)
    hidden_BLH, pooled_BH = encoder_output_for(model.config, model.parameters, ids, lengths, segments)
    is_token = np.arange(ids.shape[1]) < lengths[:, np.newaxis]
    difference = np.abs(hidden_BLH - stored["sequence_output"])[is_token]
    return float(max(difference.max(), np.abs(pooled_BH - stored["pooled_output"]).max()))


def main() -> None:
    good = True
    for folder in sorted(path for path in (Path(sys.argv[1]) / "theirs").iterdir() if path.is_dir()):
        difference = largest_difference(folder)
        print(f"{folder.name:42} read: {difference:.1e}", flush=True)
        good &= difference <= TOLERANCE
    sys.exit(0 if good else "an output differs")


if __name__ == "__main__":
    main()
