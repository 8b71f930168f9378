# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Every kind of number that is exported, with its name in each format."""

from __future__ import annotations

from jaxbench.features.exports.measure import Quantity

STEP_S = Quantity(
    name="step_s",
    measure="latency",
    scale=1e9,
    metric="jaxbench_step_seconds",
    unit="seconds",
    help="Time per step, or per call of a kernel.",
)
THROUGHPUT = Quantity(
    name="examples_per_s",
    measure="throughput",
    metric="jaxbench_throughput_examples_per_second",
    unit="examples_per_second",
    help="Examples per second over all devices.",
)
EFFICIENCY = Quantity(
    name="efficiency",
    measure="efficiency",
    metric="jaxbench_efficiency_ratio",
    unit="ratio",
    help="Speed-up over the smallest device count, divided by the ratio of the device counts.",
)
PEAK_MEMORY = Quantity(
    name="peak_bytes",
    measure="peak-memory",
    metric="jaxbench_peak_memory_bytes",
    unit="bytes",
    help="Peak memory of a step per device, by the compiler.",
)
COMPILE_S = Quantity(
    name="compile_s",
    measure="compile-time",
    metric="jaxbench_compile_seconds",
    unit="seconds",
    help="Time to compile the step, without tracing and lowering.",
)
RATIO = Quantity(
    name="ratio",
    measure="ratio",
    metric="jaxbench_comparison_ratio",
    unit="ratio",
    help="The metric of B over that of A, with the confidence interval of the verdict.",
)
TARGET_S = Quantity(
    name="target_s",
    measure="time-to-target",
    metric="jaxbench_time_to_target_seconds",
    unit="seconds",
    help="Time of the steps to the target, the geometric mean over seeds.",
)
TARGET_STEPS = Quantity(
    name="target_steps",
    measure="steps-to-target",
    metric="jaxbench_target_steps",
    unit="steps",
    help="Steps to the target, the geometric mean over seeds.",
)
QUANTITIES = (STEP_S, THROUGHPUT, EFFICIENCY, PEAK_MEMORY, COMPILE_S, RATIO, TARGET_S, TARGET_STEPS)
