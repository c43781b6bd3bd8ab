"""Settings for all tests."""

from hypothesis import settings

# The first example of a test may compile kernels, so a deadline an example makes no sense.
settings.register_profile("latentree", deadline=None)
settings.load_profile("latentree")
