# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Generation with a decoder over devices: which points a run has, and how each is built and checked."""
