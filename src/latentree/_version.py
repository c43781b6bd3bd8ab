"""The version: here alone, where every layer and the build read it."""

__version__ = "1.0.0"
