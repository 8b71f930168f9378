# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""What a result is: the record schema, and the run folder that keeps records safe. No jax."""
