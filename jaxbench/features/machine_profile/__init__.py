# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench machine`: measures this machine's peaks, launch costs and links, and writes its page."""
