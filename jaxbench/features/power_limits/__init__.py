# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The same run at several power limits of the GPUs: what a lower limit costs in time and saves in energy."""
