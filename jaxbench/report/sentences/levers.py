# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Sentences on a lever sweep: its baselines and its compiler options."""

from __future__ import annotations

from collections.abc import Sequence

from jaxbench.analysis.arms import ArmGroup
from jaxbench.analysis.quantities import devices
from jaxbench.records.manifest import Manifest
from jaxbench.report.sentences.rows import timed


def baselines(places: Sequence[ArmGroup]) -> list[str]:
    """A sentence on the baseline of each group, with its absolute time."""
    sentences = []
    for place in places:
        base = place.arms[0]
        where = f"{place.strategy} {place.scaling}, {devices(place.devices)}"
        if not base.timing.step_s.known:
            why = f" ({base.point.reason})" if base.point.reason else ""
            sentences.append(f"{where}: {base.label}, the baseline, has no times{why}, so nothing is compared.")
            continue
        sentences.append(f"{where}: {base.label}, {timed(base)}")
    return sentences


def compiler_sets(manifest: Manifest) -> list[str]:
    """The options of each named set of compiler options in the run, with its source."""
    sets = manifest["plan"].get("compiler_sets", {})
    return [f"{name}: {options} (source: {source})." for name, (options, source) in sets.items()]
