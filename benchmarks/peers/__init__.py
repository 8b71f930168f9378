# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""The suite's training steps beside PyTorch's and Keras': run ``python -m benchmarks.peers``."""
