"""Hypothesis profiles, the shared data as a fixture, and what tests tell at the end, from every process."""

import os
from pathlib import Path
from typing import Any

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


def pytest_sessionfinish(session: pytest.Session) -> None:
    """One of several processes hands over what its tests tell."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["told"] = _shared.told(session.config)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what the tests of another process tell."""
    _shared.told(node.config).extend(getattr(node, "workeroutput", {}).get("told", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show what the tests tell: how much they looked at."""
    for line in sorted(_shared.told(config)):
        terminalreporter.write_line(line)
