# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Checks, before anything is compiled, that a workload has what training needs in addition to measuring."""

from __future__ import annotations

import jax

from jaxbench.errors import UserError
from jaxbench.workloads import inspection
from jaxbench.workloads.base import KEY, TrainWorkload
from jaxbench.workloads.levers.freeze import stateful


def require(workload: TrainWorkload, metric: str = "accuracy") -> None:
    """Raises UserError with a list of what is missing: data, an inference mode for a model with state, the metric.

    For a model with batch statistics or random streams, the loss in training mode is no evaluation of the model.
    """
    params, model_state = jax.eval_shape(workload.init, KEY)
    missing = []
    if workload.data is None:
        missing.append("`data` to train on, such as data=(train, test), two dicts of arrays by field")
    if workload.evaluate is None and stateful(model_state):
        missing.append(
            "`evaluate`, a function of (params, model_state, batch) that returns the metrics in inference mode with "
            f"'{metric}' among them, because it has state such as batch statistics"
        )
    elif metric not in (names := _metrics(workload, params, model_state)):
        source = "loss" if workload.evaluate is None else "evaluate"
        other = f" (or train to another: --config.train.metric={names[0]})" if names else ""
        missing.append(f"'{metric}' among the metrics of its {source}, which are {names}{other}")
    if missing:
        raise UserError(
            f"'{workload.name}' can be measured but not trained to a target: its TrainWorkload needs "
            f"{', and '.join(missing)}."
        )


def _metrics(workload: TrainWorkload, params: object, model_state: object) -> list[str]:
    """The names of the metrics by which training is evaluated. Raises UserError unless they are scalars."""
    batch = workload.batch_avals(8)
    if workload.evaluate is not None:
        found, _ = inspection.traced(workload, "evaluate", params, model_state, batch)
        return inspection.metrics(found, f"the evaluate of '{workload.name}'")
    (_, (_, found)), _ = inspection.traced(workload, "loss", params, model_state, batch, KEY)
    return ["loss"] + inspection.metrics(found, f"the loss of '{workload.name}'")
