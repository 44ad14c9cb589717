"""What blocks, for async code."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function in a thread, so that the loop goes on meanwhile."""
    from asyncio import to_thread  # Takes longer to load than all of this package.

    return await to_thread(function, *args, **kwargs)
