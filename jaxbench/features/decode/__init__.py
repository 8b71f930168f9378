# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Generation with a decoder over devices: how each of its points is built and checked."""
