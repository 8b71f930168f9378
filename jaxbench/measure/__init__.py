# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One point in one process: compile it, check it, measure rounds.

bench, kept_arrays      prepares points and times rounds; what it keeps between two visits
recipe, model_steps     what a kind of point builds and checks; the recipe of models
compiler                builds and compiles points with their recipes
arm                     the workload, program and compiler options that a point's levers ask for
compile_report          compiles a step, and records what the compiler did
check                   parameters, optimizer, state and devices against `measure.reference`, before and after timing
proof                   the order of these checks for one point, and what they need
loss_kind, first_step   what kind of mean a loss is; why a first step fails
memory, step_facts      the memory of the process; facts in the record of a step
"""
