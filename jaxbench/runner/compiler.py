# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Builds and compiles a point in one process, without running it. Owns no process, file or pipe."""

from __future__ import annotations

import dataclasses
import gzip
from pathlib import Path
from typing import Any

import jax
from ml_collections import ConfigDict

from jaxbench import discovery, levers
from jaxbench.errors import UserError
from jaxbench.machine.start import require_threads
from jaxbench.machine.world import Members
from jaxbench.measure import expected_communication
from jaxbench.measure.compile_report import CompiledStep, compile_step
from jaxbench.parallel import multihost
from jaxbench.parallel.program import Program
from jaxbench.records.schema import CompiledRecord, CompileReport
from jaxbench.runner import explaining, known_options, pieces
from jaxbench.runner.arm import Arms, build_program, compiler_options, inspected
from jaxbench.runner.plan import Point
from jaxbench.runner.proof import Proof
from jaxbench.runner.stages import stage
from jaxbench.workloads.base import TrainWorkload


class Compiler:
    """Builds and compiles points of one experiment for the devices of this process, or for those of a target."""

    def __init__(self, config: dict[str, Any], experiment: str, devices: list[jax.Device], *, keep: bool = False):
        """keep: the one-device references of all points, where memory allows."""
        self.config = ConfigDict(config)
        self.devices = devices
        self.device = multihost.first_here(devices)
        self.members = Members.of(devices)
        self.arms = Arms(self.config, experiment, devices[0])
        self.key = jax.random.PRNGKey(self.config.seed)
        with stage("model"):  # before any point, so that a model that cannot be built is reported once
            self.plain = inspected(self.arms.config({}), experiment)
            for arm in levers.arms(self.config.lever):
                known_options.require(arm.levers, devices[0])
        self._inits: dict[tuple[Any, ...], Any] = {}
        self.passports: dict[str, CompileReport] = {}  # by point
        self._compile_s: dict[str, float] = {}  # by digest of a program that this process compiled
        own = experiment in discovery.experiments()
        self.proof = Proof(self.arms, self.plain, devices, self.key, own=own, keep=keep)

    def _grown(self, point: Point) -> int:
        """The device count for which the model is enlarged."""
        return point.devices if point.scaling == "weak" and self.config.weak == "model" else 1

    def _build(self, workload: TrainWorkload, point: Point) -> Program:
        """A new Program with a step that was never traced, and with the compiled `init` of an earlier equal Program."""
        if point.explains:
            return explaining.build(workload, point, self.devices)
        program = build_program(workload, point.strategy, self.devices[: point.devices], point.levers)
        layout = tuple(point.levers.get(name) for name in ("mesh", "schedule"))
        # Everything that changes `init`. Reusing the jitted function saves its compilation for each further arm.
        key = point.strategy, point.devices, id(workload), layout
        return dataclasses.replace(program, init=self._inits.setdefault(key, program.init))

    def compile(
        self, point: Point, extra: dict[str, Any] | None = None, *, accepted: bool = False
    ) -> tuple[TrainWorkload, Program, CompiledStep]:
        """Builds and compiles a point; runs nothing. Raises StageError.

        extra: further compiler options. accepted: another process has already checked the loss and its parts.
        """
        if not accepted:
            with stage("model"):
                kind = self.proof.loss_kind
        with stage("build"):
            known_options.require(point.levers, self.devices[0])
            workload = self.arms.workload(point.levers, self._grown(point))
            program = self._build(workload, point)
            if not accepted and explaining.is_plain(point):
                pieces.require(workload, program, kind)
        with stage("compile"):
            options = {**compiler_options(point.levers, program), **(extra or {})}
            compiled = compile_step(workload, program, point.global_batch, options=options, asked=point.devices)
            if compiled.loaded:  # another point has the same program: it takes as long to compile
                compile_s = self._compile_s.get(compiled.sha256, compiled.report.compile_s)
                passport = dataclasses.replace(compiled.report, compile_s=compile_s)
                compiled = dataclasses.replace(compiled, report=passport)
            self._compile_s[compiled.sha256] = compiled.report.compile_s
            # Before the first run: a program with too few threads would hang, not fail.
            require_threads(point.devices // len(program.members.processes), compiled.concurrent)
            _require_one_program(program.members, compiled)
            if point.explains:
                passport = explaining.passport(point, compiled.report, self.devices[0].platform)
                compiled = dataclasses.replace(compiled, report=passport)
            self.passports[point.point] = compiled.report
            return workload, program, compiled

    def compile_only(self, placed: dict[str, Any]) -> dict[str, Any]:
        """The numbers that a dry run shows for a point. Raises StageError."""
        _, program, compiled = self.compile(Point(**placed))
        passport = compiled.report
        return {
            "compile_s": (passport.trace_s or 0) + passport.lower_s + passport.compile_s,
            "peak_bytes": passport.peak_bytes,
            "temp_bytes": passport.temp_bytes,
            "flops": passport.flops_per_step,
            # the memory of one device that computes the reference, with the activations of the whole batch
            "whole_bytes": (passport.peak_bytes or 0) + (program.parts - 1) * (passport.temp_bytes or 0),
        }

    def compile_for(
        self, placed: dict[str, Any], text: str = "", options: dict[str, Any] | None = None
    ) -> CompiledRecord:
        """Compiles a point for a target, and checks its collectives. Raises StageError.

        text: the file for the compiled text, compressed; "": none. options: further compiler options.
        """
        point = Point(**placed)
        workload, program, compiled = self.compile(point, options)
        if text:
            Path(text).write_bytes(gzip.compress(compiled.text.encode(), mtime=0))
        passport = compiled.report
        return CompiledRecord(
            experiment=self.config.experiment,
            platform=self.devices[0].platform,
            device_kind=self.devices[0].device_kind,
            mesh=dict(program.mesh.shape),
            compile_s=(passport.trace_s or 0) + passport.lower_s + passport.compile_s,
            collectives=passport.collectives,
            checks=(
                expected_communication.judge(workload, program, passport, point.global_batch, devices=point.devices),
            ),
            peak_bytes=passport.peak_bytes,
            compiler_peak_bytes=passport.compiler_peak_bytes,
            temp_bytes=passport.temp_bytes,
            flops=passport.flops_per_step,
            product_flops=passport.product_flops_per_step,
            parameters=passport.parameters,
            **point.failure(),
        )


def _require_one_program(members: Members, compiled: CompiledStep) -> None:
    """Raises UserError, in every process, if one has compiled another program: their collectives would not match."""
    first, *others = members.gathered(compiled.sha256)
    if wrong := [number for number, other in zip(members.processes[1:], others, strict=True) if other != first]:
        raise UserError(
            f"process {wrong[0]} compiled another program of this step than process {members.processes[0]}: use the "
            "same versions, flags and hardware for all processes."
        )
