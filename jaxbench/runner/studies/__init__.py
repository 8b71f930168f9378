# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Studies: what a run finds out before it times anything, by compiling its step at other settings.

Each study has the name of its FILE in the run folder, `asked`, whether a config wants it, and `run`, which returns what
that file holds. All can raise UserError.
"""

from __future__ import annotations

from jaxbench.records.store import write_json
from jaxbench.runner.studies import max_batch, max_sequence, memory_by_depth
from jaxbench.runner.studies.study import Study

STUDIES = (max_batch, max_sequence, memory_by_depth)


def run(study: Study) -> None:
    """Carries out each study that the config asks for and whose file the folder lacks."""
    for each in STUDIES:
        if each.asked(study.config) and not (study.folder / each.FILE).exists():
            write_json(study.folder / each.FILE, {"schema": 1, **each.run(study)})
