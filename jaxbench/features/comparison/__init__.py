# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""From two sets of records to an answer: faster, slower, same, or cannot tell."""
