# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Where the time of a step goes by category of operation, from a trace of a few steps."""
