# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Studies: facts that a run finds before it times anything, by compiling its step at other settings.

Each study has the name of its FILE in the run folder; `asked`, whether a config wants it; and `run`, which returns the
content of that file. All can raise UserError.
"""

from __future__ import annotations

from jaxbench.records.store import write_json
from jaxbench.runner.studies import max_batch, max_sequence, memory_by_depth
from jaxbench.runner.studies.study import Study

STUDIES = (max_batch, max_sequence, memory_by_depth)


def run(study: Study) -> None:
    """Carries out the studies that the config asks for, except those with a file in the folder."""
    for each in STUDIES:
        if each.asked(study.config) and not (study.folder / each.FILE).exists():
            write_json(study.folder / each.FILE, {"schema": 1, **each.run(study)})
