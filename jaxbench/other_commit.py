# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""An arm of `jaxbench ab` that measures another commit: the files its processes load, and the settings they know."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ml_collections import ConfigDict

from jaxbench import config as config_lib
from jaxbench.errors import UserError
from jaxbench.machine import copy_facts
from jaxbench.machine.checkout import OTHER_PROTOCOL, Checkout
from jaxbench.records.documents import flatten
from jaxbench.verdicts import comparable

Fields = dict[str, Any]  # the fields of a config by path


@dataclass(frozen=True)
class OtherCommit:
    """The other commit as an arm uses it.

    Attributes:
      experiment: the experiment as its processes load it.
      source: its copy of this package, as `machine.source.of` describes it.
      manifest: the entries that replace the working tree's in the manifest.
      notes: clauses about its default settings.
    """

    experiment: str
    source: dict[str, str]
    manifest: dict[str, Any]
    notes: tuple[str, ...]

    @staticmethod
    def of(checkout: Checkout, experiment: str, config: ConfigDict) -> OtherCommit:
        """Raises UserError if the commit does not have the experiment, or does not know a setting."""
        there = checkout.experiment(experiment)
        theirs, ours = checkout.facts(there), copy_facts.facts(experiment)
        defaults = theirs["config"], _as_read(ours["config"])
        _require_known(checkout, *defaults, _as_read(flatten(config_lib.plain(config))))
        manifest = {
            "git": {"commit": checkout.commit, "dirty": False, "ref": checkout.ref},
            "source_sha256": theirs["source"]["sha256"],
            "experiment_sha256": theirs["experiment_sha256"],
        }
        return OtherCommit(there, theirs["source"], manifest, _other_defaults(checkout, *defaults))


def _require_known(checkout: Checkout, theirs: Fields, ours: Fields, asked: Fields) -> None:
    """Raises UserError for a setting that one of the two packages does not know. A new setting is allowed if the arm
    keeps its default.

    theirs, ours: the defaults of the commit and of this package. asked: the settings of the arm.
    """
    unknown = [name for name in asked if name not in theirs and asked[name] != ours.get(name)]
    if unknown:
        raise UserError(f"{checkout} does not know --config.{unknown[0]}: {OTHER_PROTOCOL}.")
    if lacking := [name for name in theirs if name not in asked]:
        raise UserError(f"{checkout} needs --config.{lacking[0]}, which is unknown here: {OTHER_PROTOCOL}.")


def _other_defaults(checkout: Checkout, theirs: Fields, ours: Fields) -> tuple[str, ...]:
    """(a clause,) if the commit's own defaults differ from the settings that are measured, else ()."""
    names = [name for name in ours if name in theirs and not name.startswith(comparable.HOW)]
    other = [f"{name} {theirs[name]!r}, here {ours[name]!r}" for name in names if theirs[name] != ours[name]]
    return (f"{checkout} has other default settings, which are not measured: {'; '.join(other)}",) if other else ()


def _as_read(fields: Fields) -> Fields:
    """The fields as another process reads them from JSON: a tuple becomes a list."""
    return dict(json.loads(json.dumps(fields)))
