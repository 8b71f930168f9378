# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Facts about a copy of this package and an experiment, from the copy that the process imports.

Run as a script, by its path, it answers for the copy that PYTHONPATH names, which may be of another commit. So it uses
only functions that such a copy needs anyway to measure.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from jaxbench import config, discovery
from jaxbench.errors import UserError
from jaxbench.machine import source
from jaxbench.records.documents import flatten


def facts(experiment: str) -> dict[str, Any]:
    """The facts about a copy and an experiment.

    source: as `source.HERE`. experiment_sha256: as in a manifest. config: the fields of the experiment's config by
    their path, with their defaults. Raises UserError if there is no such experiment, or it cannot be loaded."""
    module, preset = discovery.load_experiment(experiment), discovery.load_preset("auto")
    defaults = config.compose(Path(experiment).stem, module, preset, tiny=False)
    return {
        "source": source.HERE,
        "experiment_sha256": discovery.digest(experiment),
        "config": flatten(config.plain(defaults)),
    }


if __name__ == "__main__":
    try:
        answer = facts(sys.argv[1])
    except UserError as error:
        answer = {"error": str(error)}
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
