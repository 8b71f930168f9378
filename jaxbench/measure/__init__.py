# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Compiling, timing and checking a program, and reading its memory and trace.

compile_report          compiles a step, and records what the compiler did
reference               the same updates on one device
check                   parameters, optimizer, state and devices against the reference, before and after timing
expected_communication  the collective counts against what the strategy and the loss need
loss_kind, first_step   what kind of mean a loss is; why a first step fails
runnable                kernels, collectives and transfers, ready to time
clock                   blocks, fences, the second clock
memory, step_facts      the memory of the process; facts in the record of a step
profile                 the time of a step by operation category
"""
