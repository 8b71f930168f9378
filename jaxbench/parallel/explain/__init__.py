# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Programs that explain what a sharded step loses (docs/metrics, Waterfall).

All are made from the traced step itself, so they do exactly its work: `without_collectives` the step with nothing sent,
on all devices or one device's share on one of them; `only_collectives` what it sends and nothing else. `large_product`
is what the same devices reach in a matrix product.
"""
