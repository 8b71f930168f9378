# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""From records to conclusions: confidence intervals, scaling, fits, the summary table. No jax."""
