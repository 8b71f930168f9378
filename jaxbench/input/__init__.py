# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Where a step's batch comes from: it lies on the devices, on the host, or is made by a pipeline while steps run."""
