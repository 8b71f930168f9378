# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What everyone reads to know how a number came about, in the order of docs/TOUR.md. It imports no feature.

workload, weighted        pure functions and facts about one training step; weighted means
program                   a compiled step on a mesh, and its canonical state
plan, bench               the points of a run; one point from compiling to its rounds
reference                 the same updates on one device
clock                     blocks, fences, the second clock
schema, store             the record, and the run folder
"""
