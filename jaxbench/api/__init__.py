# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The Python API: the command line in a child process, and its results as tables, figures and HTML. docs/PYTHON.md."""
