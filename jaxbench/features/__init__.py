# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""One folder for each thing that jaxbench can do besides measuring a step: its measuring, analysis and page."""
