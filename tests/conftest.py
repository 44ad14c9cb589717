"""Hypothesis profiles, the shared data as a fixture, and what tests tell at the end, from every process."""

import gc
import importlib
import os
import pkgutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import chat_compaction
from tests import _shared

# No test here is timed, so neither a deadline nor a health check may go by the clock.
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

# Coverage triples the time, so it is measured where a test is about one thing. These go the same ways over and over: on
# recorded sessions and shapes of histories, at growing sizes, on broken files, in the docs. So do random histories and
# what is slow. What they alone run is told as missing, so the bound holds of the other tests.
NOT_MEASURED = {
    *("test_recorded_sessions", "test_recorded_strategies", "test_cli_recorded", "test_formats_recorded"),
    *("test_history_shapes", "test_sdk_validation", "test_sessions_hostile"),
    *("test_growth", "test_operations", "test_work", "test_docs", "test_benchmarks"),
}


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder of recorded sessions and conformance data; without it, the test is skipped."""
    return _shared.shared_dir()


def pytest_configure(config: pytest.Config) -> None:
    """Know the mark of pytest-cov where that is switched off, too."""
    config.addinivalue_line("markers", "no_cover: coverage is not measured in this test")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Measure coverage where it tells something; of random histories in the tests of what draws them."""
    for item in items:
        drawn = item.get_closest_marker("hypothesis") and item.path.stem != "test_testing"
        if drawn or item.get_closest_marker("slow") or item.path.stem in NOT_MEASURED:
            item.add_marker("no_cover")


def pytest_collection_finish() -> None:
    """Load all of the package: what an unmeasured test loads first would be told as missing, to its last import.

    And what the tests are made of stays to the end: the garbage collector need not go through it each time.
    """
    for module in pkgutil.walk_packages(chat_compaction.__path__, "chat_compaction."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    gc.freeze()


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
