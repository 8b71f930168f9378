# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Ablations of a sharded step: programs that show where it loses time (docs/metrics, Waterfall).

`without_collectives` is the step without communication, on all devices or, for one device's share, on a single one.
`only_collectives` is the communication of the step and nothing else. Both are made from the traced step itself, so
their work is that of the step. `large_product` shows what the same devices reach in a matrix product.
"""
