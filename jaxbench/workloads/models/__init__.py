# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The models that experiments train: one file for each family, in Flax NNX, with the FLOPs of each layer by formula."""
