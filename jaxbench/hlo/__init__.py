# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Optimized HLO text, parsed once. Needs no jax.

module             the text as a Module of instructions
collective_counts  its collectives by kind and mesh axis
product_flops      the FLOPs of its products
operations         the category of each operation, and the program's requests to the host
out_of_memory      the memory that a refused program needs
"""
