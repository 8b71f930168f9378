# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Spreads a workload over devices. The strategies are the files of `parallel/strategies/`. They share:

    axes, layout                 named meshes; where the arrays of a state lie on them
    step                         what steps are built from: gradients, micro-batches, the update
    data_parallel, sharded_step  the steps; ways to average gradients, phases of a step
    stage, schedule              a pipeline's layout and step; its tables of work
    optimizer                    which whole arrays an optimizer needs, and the update that gathers them
    multihost                    arrays that span several processes

`core.program` is the Program that each builds. `collectives` has the cases of a machine.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Any

import jax

from jaxbench.core.program import Program
from jaxbench.core.schema import OWN
from jaxbench.core.workload import Partition, TrainWorkload
from jaxbench.errors import UserError, did_you_mean
from jaxbench.levers import GATHER, MESH, SCHEDULE
from jaxbench.parallel import axes, strategies


def strategy_names() -> list[str]:
    """All strategies, by the names of their files."""
    return sorted(module.name for module in pkgutil.iter_modules(strategies.__path__))


def load(strategy: str) -> Any:
    """Returns the strategy's module. Raises UserError for an unknown name."""
    if strategy not in strategy_names():
        raise UserError(f"there is no strategy '{strategy}': {did_you_mean(strategy, strategy_names())}")
    return importlib.import_module(f"{strategies.__name__}.{strategy}")


def takes_any_mesh(strategy: str) -> bool:
    """Whether the user chooses the mesh."""
    return strategy != OWN and load(strategy).AXIS is None


def is_replicated(strategy: str) -> bool:
    """Whether each device has the whole state and a part of the batch, so that its work is a smaller batch."""
    return strategy == OWN or hasattr(load(strategy), "WRITTEN_OUT")


def written_out(strategy: str) -> str:
    """The equivalent strategy with explicit collectives: the strategy itself if it writes all of them."""
    return getattr(load(strategy), "WRITTEN_OUT", strategy)


def of_any_model() -> list[str]:
    """The strategies that take every workload: the meaning of `--config.strategy=all`."""
    return _along_axes_of(None)


def of_model(workload: TrainWorkload) -> list[str]:
    """The strategies that take this model, except those for which the user must choose a mesh."""
    return _along_axes_of(workload.partition)


def _along_axes_of(partition: Partition | None) -> list[str]:
    axis_of = {name: load(name).AXIS for name in strategy_names()}
    return [name for name, axis in axis_of.items() if axis is not None and axes.splits(partition, axis)]


def mesh_sizes(strategy: str, devices: int, mesh: str = MESH.default) -> dict[str, int]:
    """The devices along each mesh axis of a strategy over `devices` devices. mesh: the value of the lever.

    Raises UserError for a mesh that does not multiply to the devices, or that the strategy does not take.
    """
    axis = OWN if strategy == OWN else load(strategy).AXIS  # a user's own step brings its mesh
    if axis is not None:
        if mesh != MESH.default:
            raise UserError(
                f"--config.lever.mesh={mesh} needs the strategy hybrid, because '{strategy}' defines its own mesh: use "
                "--config.strategy=hybrid."
            )
        return {axis: devices}
    if mesh == MESH.default:
        raise UserError(
            f"--config.strategy={strategy} needs a mesh: use --config.lever.mesh=data={devices}, for example."
        )
    sizes = axes.parse(mesh)
    axes.require_product(sizes, devices, mesh)
    return sizes


def settings(
    strategy: str,
    devices: int,
    mesh: str = MESH.default,
    schedule: str = SCHEDULE.default,
    *,
    sequence: bool = False,
    ulysses: bool = False,
    gather: str = GATHER.default,
) -> dict[str, Any]:
    """The keyword arguments of a strategy's `build`. The others are the values of its levers.

    Raises UserError for a lever that the strategy does not have.
    """
    sizes = mesh_sizes(strategy, devices, mesh)
    if schedule != SCHEDULE.default and "stage" not in sizes:
        raise UserError(
            f"--config.lever.schedule={schedule} needs a pipeline: use --config.strategy=pipeline, or a mesh with the "
            "axis stage."
        )
    if sequence and "tensor" not in sizes:
        raise UserError(
            "--config.lever.sequence_parallel=on needs a mesh with the axis tensor: use --config.strategy=tensor."
        )
    if ulysses and "context" not in sizes:
        raise UserError(
            "--config.lever.context_attention=ulysses needs a mesh with the axis context: use "
            "--config.strategy=context."
        )
    if gather != GATHER.default and ("fsdp" not in sizes or "stage" in sizes):
        raise UserError(
            f"--config.lever.gather={gather} needs a mesh with the axis fsdp and without the axis stage, which gathers "
            "once in any case: use --config.strategy=fsdp."
        )
    values = {"sizes": sizes, "schedule": schedule, "sequence": sequence, "ulysses": ulysses, "gather": gather}
    # What a strategy does not take was refused above, or is at its default, so nothing is dropped silently.
    parameters = inspect.signature(load(strategy).build).parameters
    return {name: value for name, value in values.items() if name in parameters}


def build(strategy: str, workload: TrainWorkload, devices: list[jax.Device], **levers: Any) -> Program:
    """Spreads `workload` over `devices` by the named strategy. levers: the remaining arguments of `settings`.

    Raises UserError for a lever that the strategy does not have, and Unsupported for a model that it cannot take.
    """
    return load(strategy).build(workload, devices, **settings(strategy, len(devices), **levers))
