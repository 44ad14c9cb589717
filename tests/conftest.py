"""Hypothesis profiles, and the shared data as a fixture."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import _shared

# No test here is timed, so neither a deadline nor a health check may go by the clock.
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder of recorded sessions and conformance data; without it, the test is skipped."""
    return _shared.shared_dir()
