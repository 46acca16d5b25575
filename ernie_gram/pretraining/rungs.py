"""The rungs of the ablation, from the baselines to the full objective (section 4.7), each a file of conf/ablation."""

from __future__ import annotations

from reader.system.installation import CONF

CONFIGS = CONF / "ablation"
# The paper's table has "explicit" (#5), "cnp" (#4), "enrm" (#3), "both" (#2) and "full" (#1).
RUNGS = ("token", "contiguous", "explicit", "cnp", "enrm", "both", "full")
