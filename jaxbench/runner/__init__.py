# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One point in one process, the sweep over points, and training to a target."""
