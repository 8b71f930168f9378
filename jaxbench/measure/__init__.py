# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What `core.bench` calls for one point in one process: compiling, checking, and reading its memory.

arm                     the workload, program and compiler options that a point's levers ask for
compile_report          compiles a step, and records what the compiler did
check                   parameters, optimizer, state and devices against `core.reference`, before and after timing
proof                   the order of these checks for one point, and what they need
expected_communication  what the compiled step may send
loss_kind, first_step   what kind of mean a loss is; why a first step fails
memory, step_facts      the memory of the process; facts in the record of a step
"""
