# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`StepWorkload`: a train step that somebody else wrote, with its own mesh, shardings, state and data."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class OwnStep:
    """A train step on some devices.

    Attributes:
      step: (state, batch) -> (state, metrics), any callable that JAX can trace, jitted inside or not. The state must
        return with the structure, shapes, dtypes and shardings that it had. jaxbench jits the call again, so a
        `donate_argnums` inside has no effect.
      init: () -> a fresh state, placed on the devices, with the same values at each call. A step may donate its arrays,
        so they must be made in this call. Leaves that are no arrays, such as functions and flags, are constants of the
        compiled step.
      batch: the global batch, placed on the devices; or a function of the step number, from 0, that returns it. It is
        then called before each step, and its time counts. It has as many rows as `make` was asked for.
      parameters: state -> the part of the state that is compared with one device as trained parameters. The other
        arrays are compared, too, and whole numbers must be equal.
      context: () -> a context manager, such as ``jax.set_mesh(mesh)``, that is open during init, tracing and calls.
      donate: whether the step may overwrite the state.
    """

    step: Callable[[Any, Any], tuple[Any, object]]
    init: Callable[[], Any]
    batch: Any
    parameters: Callable[[Any], object] = lambda state: state
    context: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext
    donate: bool = True  # without it two states are in memory at once


@dataclass(frozen=True, kw_only=True)
class StepWorkload:
    """A train step to measure, which `build(config)` of an experiment returns.

    Attributes:
      name: the experiment's name.
      make: (devices, batch) -> OwnStep, for a list of devices and a number of examples on all of them together. It is
        called in a process that sees exactly these devices, and must give the same examples on any number of devices.
      batch: the number of examples of a step: of all devices in strong scaling, of each device in weak scaling.
      unit: what a throughput counts, such as "images".
      units_per_example: of the unit "tokens", how many an example has. A run then shows examples and tokens per second.
      flops_per_example: of the forward and backward pass, two per multiply-add. None: the products in the compiled
        program, recomputed ones included.
    """

    name: str
    make: Callable[[list[Any], int], OwnStep]
    batch: int
    unit: str = "examples"
    units_per_example: int = 1
    flops_per_example: float | None = None
