"""Kernels of inference: messages and expected counts on trees."""
