# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What everything else builds on. Importing a file of it loads fewer than 1,500 lines of the package.

workload, weighted        pure functions and facts about one training step; weighted means
program                   a compiled step on a mesh, and its canonical state
clock                     blocks, fences, the second clock
schema, same_model        the record, and whether two records measured one model
store                     the run folder
"""
