# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Builds and compiles points with their recipes, for the devices of this process or for absent hardware."""

from __future__ import annotations

import dataclasses
import gzip
from collections.abc import Mapping
from pathlib import Path

import jax

from jaxbench.core.point import Point
from jaxbench.core.schema import CompiledRecord, CompileReport
from jaxbench.measure.arm import compiler_options
from jaxbench.measure.compile_report import CompiledStep, require_one_program
from jaxbench.measure.compile_times import known_compile_s, note_compile_s
from jaxbench.measure.recipe import BuiltStep, Recipe
from jaxbench.processes.group import members_of
from jaxbench.processes.messages import Compiled, Fields
from jaxbench.processes.server import stage


class Compiler:
    """Compiles points of one experiment; runs nothing.

    Attributes:
      whole: the recipe of whole steps. parts: that of ablations, which explain a whole step; None: there are none.
      reports: of all points that were compiled, by point.
    """

    def __init__(self, experiment: str, devices: list[jax.Device], whole: Recipe):
        """experiment: its name in records."""
        self.experiment, self.devices, self.whole = experiment, devices, whole
        self.parts: Recipe | None = None
        self.reports: dict[str, CompileReport] = {}
        self._compile_s: dict[str, tuple[float, bool]] = {}  # and whether it is recorded, by digest of the program

    def recipe(self, point: Point) -> Recipe:
        return self.parts if point.explains and self.parts is not None else self.whole

    def compile(self, point: Point, extra: Mapping[str, object] | None = None, *, accepted: bool = False) -> BuiltStep:
        """Builds and compiles a point. Raises StageError.

        extra: further compiler options. accepted: another process has already checked the loss and its parts.
        """
        recipe = self.recipe(point)
        workload, program = recipe.build(point, accepted=accepted)
        with stage("compile"):
            options = {**compiler_options(point.levers, program), **(extra or {})}
            program, compiled = recipe.executable(workload, program, point, options, accepted=accepted)
            compiled = dataclasses.replace(compiled, report=self._with_first_compile(compiled))
            require_one_program(members_of(program.mesh), compiled)
            compiled = dataclasses.replace(compiled, report=recipe.report(point, compiled.report))
            self.reports[point.point] = compiled.report
            return BuiltStep(point, workload, program, compiled)

    def _with_first_compile(self, compiled: CompiledStep) -> CompileReport:
        """The report with a compile time that is one. Loading took less; an equal program took it when it was compiled,
        in this process or in an earlier one."""
        report, sha256 = compiled.report, compiled.sha256
        if compiled.loaded is None:
            note_compile_s(sha256, report.compile_s)
        elif (here := self._compile_s.get(sha256)) is not None:
            return dataclasses.replace(report, compile_s=here[0], compile_recorded=here[1])
        else:
            compile_s = known_compile_s(sha256, compiled.loaded)
            report = dataclasses.replace(report, compile_s=compile_s, compile_recorded=True)
        self._compile_s[sha256] = report.compile_s, report.compile_recorded
        return report

    def only(self, fields: Fields) -> Compiled:
        """The numbers that a dry run shows for a point. fields: `Point.to_json`. Raises StageError."""
        built = self.compile(Point.from_json(fields))
        report = built.compiled.report
        return Compiled(
            compile_s=(report.trace_s or 0) + report.lower_s + report.compile_s,
            peak_bytes=report.peak_bytes,
            temp_bytes=report.temp_bytes,
            flops=report.flops_per_step,
            whole_bytes=(report.peak_bytes or 0) + (built.program.parts - 1) * (report.temp_bytes or 0),
        )

    def for_target(self, fields: Fields, text_file: str = "", options: Fields | None = None) -> CompiledRecord:
        """Compiles a point for absent hardware, and checks its collectives. Raises StageError.

        text_file: where to write the compiled text, gzipped; "": nowhere. options: further compiler options.
        """
        point = Point.from_json(fields)
        built = self.compile(point, options)
        program, report = built.program, built.compiled.report
        if text_file:
            Path(text_file).write_bytes(gzip.compress(built.compiled.text.encode(), mtime=0))
        return CompiledRecord(
            experiment=self.experiment,
            platform=self.devices[0].platform,
            device_kind=self.devices[0].device_kind,
            mesh=dict(program.mesh.shape),
            compile_s=(report.trace_s or 0) + report.lower_s + report.compile_s,
            collectives=report.collectives,
            checks=self.recipe(point).sent_checks(built),
            peak_bytes=report.peak_bytes,
            compiler_peak_bytes=report.compiler_peak_bytes,
            temp_bytes=report.temp_bytes,
            flops=report.flops_per_step,
            product_flops=report.product_flops_per_step,
            parameters=report.parameters,
            attention=report.attention,
            passes=program.passes,
            point=point.point,
            strategy=point.strategy,
            scaling=point.scaling,
            devices=point.devices,
            global_batch=point.global_batch,
            arm=point.arm,
        )
