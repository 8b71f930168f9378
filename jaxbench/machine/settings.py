# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Applies `catalog.jax_settings` to this process."""

from __future__ import annotations

from typing import Any

import jax

from jaxbench.catalog.jax_settings import REFUSED, SETTINGS, refusal

found: dict[str, str] = {}  # settings that were reset here, and that the experiment's file changed; named as variables
_before: dict[str, Any] = {}  # all values at the last check of this process


def settle() -> None:
    """Resets the settings that must be reset, and raises UserError for those that are refused.

    Called when devices start, and after an experiment's file has run, because it may change settings."""
    values: dict[str, Any] = jax.config.values
    found.update({name.upper(): str(value) for name, value in values.items() if value != _before.get(name, value)})
    for name, setting in SETTINGS.items():
        value = values.get(name)
        if value in (None, setting.value):  # None: as if it were not set, or this JAX does not have it
            continue
        if setting.decision == REFUSED:
            raise refusal(f"{name}={value}", setting)
        found[name.upper()] = str(value)
        jax.config.update(name, setting.value)
    _before.update(values)
