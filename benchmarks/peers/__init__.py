# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""Compares the suite's training steps with PyTorch and Keras: run ``python -m benchmarks.peers``."""
