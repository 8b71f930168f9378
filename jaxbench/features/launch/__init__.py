# Copyright 2026 The jaxbench authors. SPDX-License-Identifier: Apache-2.0
"""`jaxbench launch`: starts the same command many times on a cluster, with the cluster's own launcher.

A request (`job.py`) becomes one job for each node count, and an engine (`engines/`, one file each) submits it. Nothing
here measures. The started processes are ordinary `jaxbench run` processes, and find each other as JAX does.
"""
