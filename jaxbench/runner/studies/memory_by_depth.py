# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""How the memory of a step grows with the number of blocks, for each policy of recomputation, from compiling alone."""

from __future__ import annotations

from typing import Any

from jaxbench.errors import UserError
from jaxbench.runner.studies.study import Study

FILE = "remat_law.json"
DEPTH = "layers"  # the field of config.model with the number of identical blocks


def asked(config: dict[str, Any]) -> bool:
    """Whether the config wants this study. Raises UserError as `depths` does."""
    return bool(depths(config))


def depths(config: dict[str, Any]) -> list[int]:
    """Reads ``config.depths``. Raises UserError unless it lists numbers of blocks and the model has such a field."""
    words = [word.strip() for word in str(config["depths"]).split(",") if word.strip()]
    if words and DEPTH not in config["model"]:
        raise UserError(f"--config.depths={config['depths']}: this model has no config.model.{DEPTH}; gpt has.")
    if not all(word.isdecimal() and int(word) > 0 for word in words):
        raise UserError(f"--config.depths={config['depths']} is not a list of numbers of blocks such as 4,8,16,32.")
    return sorted({int(word) for word in words})


def run(study: Study) -> dict[str, Any]:
    """Compiles the step of each `remat` at each depth, on the smallest device count.

    The scratch memory of a step that does not fit the device is None. Raises UserError when a step cannot be compiled
    for another reason.
    """
    fewest = min(point.devices for point in study.points)
    arms = {point.levers["remat"]: point for point in reversed(study.points) if point.devices == fewest}
    rows = []
    for blocks in depths(study.config):
        with study.console.status(f"memory of {blocks} blocks: compiling"):
            worker = study.with_model(**{DEPTH: blocks}).worker("memory_by_depth", next(iter(arms.values())))
            with study.compiling(f"the step of {blocks} blocks", worker) as compiled:
                for remat, point in reversed(arms.items()):
                    rows.append({"remat": remat, "blocks": blocks, "temp_bytes": compiled(point.to_json()).temp_bytes})
    return {"rows": rows}
