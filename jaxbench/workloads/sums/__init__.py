# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Workloads that are sums over rows: regression, k-means and boosted trees. `adapt.from_sums` builds them."""
