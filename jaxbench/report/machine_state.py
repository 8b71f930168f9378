# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Sentences on a run's machine: its identity, and whether other programs used it meanwhile."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxbench.analysis import load
from jaxbench.analysis.measured import Measured
from jaxbench.catalog import jax_settings
from jaxbench.digits import digits

MOSTLY = 0.5  # a point is named if more than this share of its rounds was contended


def warnings(manifest: Mapping[str, Any], points: Sequence[Measured[Any]]) -> list[str]:
    """Warnings about contention with other programs during the run; [] without any."""
    disturbed = [point for point in points if load.of(point).contended > MOSTLY]
    sentences = []
    if disturbed:
        names = ", ".join(point.point for point in disturbed[:4])
        names += f" and {len(disturbed) - 4} more" if len(disturbed) > 4 else ""
        reason = next(filter(None, (load.contended(disturbed[0], each) for each in disturbed[0].rounds)))
        sentences.append(f"Other programs used the machine in most rounds of {names}: in one of them, {reason}.")
    if shared := manifest.get("shared_with"):
        sentences.append(f"The machine was shared on purpose (--share_machine) with {shared}.")
    return sentences


def description(manifest: Mapping[str, Any], points: Sequence[Measured[Any]]) -> list[str]:
    """Sentences on the machine's identity, its load, and its JAX settings."""
    facts = manifest.get("identity") or {}
    known = {name: facts.get(name) for name in ("family", "model", "stepping", "kernel")}
    parts = [str(manifest.get("cpu_model") or "unknown processor")]
    parts += [f"{name} {value}" for name, value in known.items() if value not in (None, "")]
    if cores := manifest.get("cores"):
        parts.append(f"{cores} usable core{'s' if cores != 1 else ''}")
    product = facts.get("product_s")
    if product is not None:
        parts.append(f"the reference product takes {digits(1e3 * product)} ms on a core")
    elif facts:
        parts.append("the reference product was not measured, because the machine was busy")
    others = taken([load.of(point) for point in points])
    environments = [each.get("environment") or {} for each in (manifest, *manifest.get("workers", {}).values())]
    load_of_others = [f"{others[:1].upper()}{others[1:]}."] if others else []
    return [f"{', '.join(parts)}.", *load_of_others, *jax_settings.sentences(environments)]


def taken(states: Sequence[load.Load]) -> str:
    """The share of CPU time that other programs and the hypervisor took, as a clause (medians over points); "" if
    unknown."""
    words = {"others": "other processes took", "steal": "the hypervisor took"}
    values = {name: [v for state in states if math.isfinite(v := getattr(state, name))] for name in words}
    clauses = [f"{word} {100 * float(np.median(values[name])):.1f} %" for name, word in words.items() if values[name]]
    of_several = " (median over points)" if len(states) > 1 else ""
    unknown = "" if values["steal"] else "; the hypervisor's share is not reported"
    return f"{' and '.join(clauses)} of its CPUs' time{of_several}{unknown}" if clauses else ""
