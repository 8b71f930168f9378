# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One point in one process: compiling, checking, timing, and reading its memory.

point, bench            a point, and its way from compiling to its rounds
arm                     the workload, program and compiler options that a point's levers ask for
compile_report          compiles a step, and records what the compiler did
reference               the same updates on one device
check                   parameters, optimizer, state and devices against the reference, before and after timing
proof                   the order of these checks for one point, and what they need
expected_communication  what the compiled step may send
loss_kind, first_step   what kind of mean a loss is; why a first step fails
memory, step_facts      the memory of the process; facts in the record of a step
"""
