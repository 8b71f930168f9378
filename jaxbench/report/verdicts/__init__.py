# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""A comparison of two runs, shown: in the terminal, as JSON, as JUnit's XML, and as Markdown."""
