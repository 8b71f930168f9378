# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Training to a target on real data: the loop, its checkpoints, and equal final bits after a kill and a restart."""
