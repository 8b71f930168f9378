# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Applies a point's levers to the experiment: builds the workload and the Program that are measured."""

from __future__ import annotations

import copy
import dataclasses
import difflib
import json
import re
from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding
from jaxlib import xla_client
from ml_collections import ConfigDict

from jaxbench import discovery, parallel
from jaxbench.core.program import Program
from jaxbench.core.workload import KEY, TrainWorkload
from jaxbench.errors import Unsupported, UserError
from jaxbench.levers import (
    ACCUMULATE,
    COMPILER,
    CONTEXT_ATTENTION,
    DEFAULTS,
    EXECUTION,
    GATHER,
    MESH,
    PART,
    REDUCTION,
    REMAT,
    SCHEDULE,
    SEQUENCE_PARALLEL,
    STAGE_INPUTS,
    Options,
    option_sets,
    require_platform,
)
from jaxbench.machine.start import reset_jax_settings
from jaxbench.parallel import data_parallel, step_phases
from jaxbench.parallel.step import keep_barriers, without
from jaxbench.workloads import inspection
from jaxbench.workloads import levers as transforms
from jaxbench.workloads.adapters import pure
from jaxbench.workloads.levers import stateful
from jaxbench.workloads.optimizers import warmed
from jaxbench.workloads.own_step import StepWorkload

# The names of the fusion passes of XLA's CPU and GPU compilers.
FUSION_PASSES = (
    *("fusion", "priority-fusion", "multi_output_fusion"),
    *("horizontal_loop_fusion", "horizontal_input_fusion"),
)
_UNKNOWN = re.compile(r"No such compile option: '(?P<option>[^']*)'")  # of XLA's compilers
_VARIABLE = {"tpu": "LIBTPU_INIT_ARGS"}  # the variable for options of the whole process; XLA_FLAGS on other platforms


def build_workload(config: ConfigDict, experiment: str, *, grown: int = 1) -> TrainWorkload:
    """Loads the experiment (a name or a path) and builds its workload.

    grown: the device count for which the experiment's own `grow` enlarges the model. Raises UserError if the experiment
    does not return a TrainWorkload, or has no `grow`.
    """
    if grown > 1:
        module = discovery.load_experiment(experiment)
        if not hasattr(module, "grow"):
            raise UserError(f"--config.weak=model needs grow(config, devices), which '{experiment}' lacks: use batch.")
        with discovery.naming_lines_of(module):
            config = module.grow(copy.deepcopy(config), grown)
    workload = discovery.build(experiment, config)
    reset_jax_settings()
    if isinstance(workload, StepWorkload):
        raise UserError(f"'{workload.name}' is your own step, not a model: use jaxbench run, try or forecast.")
    if not isinstance(workload, TrainWorkload):
        raise UserError(f"build(config) of '{experiment}' returned {type(workload).__name__}, not a TrainWorkload.")
    workload = dataclasses.replace(workload, init=pure.either_form(workload.init), loss=pure.either_form(workload.loss))
    return inspection.with_least(workload, config.batch)


def inspected(config: ConfigDict, experiment: str) -> TrainWorkload:
    """`build_workload`, followed by an inspection of the workload. Raises UserError for the first fault."""
    workload = build_workload(config, experiment)
    inspection.inspect(workload, batch=config.batch)
    return workload


class Arms:
    """The workloads of one experiment's arms, each built once."""

    def __init__(self, config: ConfigDict, experiment: str, device: jax.Device, *, warmup: int = 0):
        """Builds nothing yet. warmup: the number of steps of a training in which its learning rate grows."""
        self._warmup = warmup
        self._config, self._experiment, self._device = config, experiment, device
        self._built: dict[str, TrainWorkload] = {}

    def config(self, levers: dict[str, str]) -> ConfigDict:
        """The experiment's config with one value per lever: the arm's, or the default."""
        # A copy, because arms are built in any order and must not see each other's values.
        config = copy.deepcopy(self._config)
        with config.unlocked():
            config.lever.update({**DEFAULTS, **levers, "ladder": ""})
        return config

    def workload(self, levers: dict[str, str], grown: int = 1) -> TrainWorkload:
        """The workload with these levers. Raises UserError for a lever that this model or device does not support."""
        # Only levers that change the workload are in the key: arms that differ in another lever share a workload, and
        # so its one-device reference.
        key = json.dumps(
            [grown, {name: levers.get(name, DEFAULTS[name]) for name in transforms.changing()}], sort_keys=True
        )
        if key not in self._built:
            workload = warmed(build_workload(self.config(levers), self._experiment, grown=grown), self._warmup)
            device = {"platform": self._device.platform, "device_kind": self._device.device_kind}
            self._built[key] = transforms.apply(workload, levers, **device)
        return self._built[key]

    def reference(self, levers: dict[str, str], grown: int = 1, *, uses_key: bool = False) -> TrainWorkload:
        """The workload that a correct arm must agree with: without the levers that must not change the result.

        uses_key: whether the loss draws random numbers.
        """
        # Micro-batches change batch statistics (each micro-batch has its own) and random numbers (each micro-batch has
        # its own key), but nothing else. They are kept for models that have either.
        plain = self.workload({**levers, REMAT.name: REMAT.default, ACCUMULATE.name: ACCUMULATE.default}, grown)
        _, model_state = jax.eval_shape(plain.init, KEY)
        kept = uses_key or stateful(model_state)
        return self.workload({**levers, REMAT.name: REMAT.default}, grown) if kept else plain


def build_program(workload: TrainWorkload, strategy: str, devices: list[jax.Device], levers: dict[str, str]) -> Program:
    """The Program of an arm. Raises UserError for levers that this strategy does not support."""
    part, execution, mean = PART.of(levers), EXECUTION.of(levers), REDUCTION.of(levers)
    if workload.sent and not parallel.is_replicated(strategy):
        raise Unsupported(
            f"'{workload.name}' is a sum over rows: every device has its whole state, but the strategy '{strategy}' "
            "splits it: use jit_auto, jit_explicit, shard_map or pmap."
        )
    if REMAT.of(levers) == STAGE_INPUTS and "stage" not in parallel.mesh_sizes(strategy, len(devices), MESH.of(levers)):
        raise UserError(
            f"--config.lever.remat={STAGE_INPUTS} recomputes a stage of a pipeline, and '{strategy}' has none: use "
            "remat=block, or --config.strategy=pipeline."
        )
    settings = parallel.settings(
        strategy,
        len(devices),
        MESH.of(levers),
        levers.get(SCHEDULE.name, SCHEDULE.default),
        sequence=SEQUENCE_PARALLEL.of(levers),
        ulysses=CONTEXT_ATTENTION.of(levers),
        gather=GATHER.of(levers),
    )
    # A reduction is written out in the step, so the strategy must be the one that writes its step in the same way.
    if mean is not None and (strategy != "shard_map" or part != "step" or execution not in ("donated", "unfused")):
        raise UserError(
            f"--config.lever.reduction={levers[REDUCTION.name]} needs the strategy shard_map and a whole compiled "
            "step: use --config.strategy=shard_map, part=step and execution=donated."
        )
    if part != "step":
        if strategy != "shard_map":
            raise UserError(
                f"--config.lever.part={part} needs a strategy with explicit communication: use "
                "--config.strategy=shard_map."
            )
        return step_phases.build_phases(workload, devices, part, donate=execution != "jit")
    if mean is not None:
        return data_parallel.build_reduction(workload, devices, *mean)
    program = parallel.load(strategy).build(workload, devices, **settings)
    if execution in ("donated", "unfused"):
        return program
    # The function inside a `pmap` computes one device's part, so `jit` alone cannot compile it.
    if strategy == "pmap":
        raise UserError(
            f"--config.lever.execution={execution} is not possible under pmap: use --config.strategy=jit_auto."
        )
    # What remains is execution=jit or eager: the same step without donation, so that its inputs stay alive.
    outputs = program.state_sharding, NamedSharding(program.mesh, PartitionSpec())
    return dataclasses.replace(program, step=jax.jit(program.step.__wrapped__, out_shardings=outputs))


def compiler_options(levers: dict[str, str], program: Program) -> Options:
    """The compiler options of an arm's step: those of the lever `compiler`, and the passes that the levers and the
    Program disable."""
    options, passes = COMPILER.of(levers), program.disabled_passes
    if EXECUTION.of(levers) in ("unfused", "eager"):
        passes += FUSION_PASSES
    # Both compute something twice, or in turn, on purpose: without its barriers XLA would merge or reorder that.
    if REMAT.of(levers) != REMAT.default or ACCUMULATE.of(levers) > 1:
        passes += keep_barriers(program.mesh)
    # The option is a list. The arm's own passes join it, and neither list replaces the other.
    typed = str(options.get("xla_disable_hlo_passes", "")).split(",")
    return options | without(filter(None, (*passes, *typed)))


def require_options(levers: Mapping[str, str], device: jax.Device) -> None:
    """Raises UserError for compiler options that XLA cannot use for the arm on this device.

    For options that XLA does not know, the error is Unsupported, a subclass.
    """
    options, text = COMPILER.of(levers), levers.get(COMPILER.name, "")
    if not options:
        return
    require_platform(levers, device.platform)
    if EXECUTION.of(levers) == "eager":
        raise UserError(
            f"--config.lever.compiler={text} needs a step that is compiled as a whole, but execution=eager runs it "
            "operation by operation: use execution=donated."
        )
    # The smallest program that XLA can compile: the options are judged before minutes go into a model.
    scalar = jax.ShapeDtypeStruct((), jnp.float32, sharding=SingleDeviceSharding(device))
    lowered = jax.jit(lambda x: x + 1).lower(scalar)
    try:
        lowered.compile(options)
    except jax.errors.JaxRuntimeError as error:
        answer = " ".join(str(error).split())
        if (unknown := _UNKNOWN.search(answer)) is None:
            refusal = f"--config.lever.compiler={text} is refused by this XLA ({answer[:300]})"
            raise UserError(f"{refusal}: use {COMPILER.default}, or a value that it takes.") from error
        option, variable = unknown["option"], _VARIABLE.get(device.platform, "XLA_FLAGS")
        # Options begin alike ("xla_gpu_enable_"), so at difflib's 0.6 almost any of them would be close.
        close = difflib.get_close_matches(option, _known(), n=1, cutoff=0.8)
        instead = f"did you mean '{close[0]}'?" if close else f"set an option of the whole process with {variable}."
        raise Unsupported(
            f"--config.lever.compiler={text} has {option}, which this XLA does not know as an option of a program: "
            f"{instead}"
        ) from error


def _known() -> list[str]:
    """The options of this XLA, and those of the catalogue."""
    owner = xla_client.CompileOptions()  # must outlive the text of its part
    text = repr(owner.executable_build_options.debug_options)
    catalogued = (word for each in option_sets().values() for word in each.options.split())
    return [*(word.partition("=")[0] for word in catalogued), *re.findall(r"^(xla_\w+): ", text, re.MULTILINE)]
