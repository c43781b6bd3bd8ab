"""Kernels of distances: counting pairs of columns."""
