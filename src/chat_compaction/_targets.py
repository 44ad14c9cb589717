"""What a target promises beside its trigger."""

from __future__ import annotations

from collections.abc import Iterator

from ._predicates import METRICS, AllOf, AnyOf, Comparison, Predicate, tokens


def token_limit(target: Predicate) -> int | None:
    """The smallest ``tokens <= n`` that stands anywhere in a target, or None."""
    limits = [c.upper for c in comparisons(target) if c.metric == tokens and c.upper is not None]
    return min(limits, default=None)


def comparisons(condition: Predicate) -> Iterator[Comparison]:
    """Every comparison in a predicate, at any depth."""
    if isinstance(condition, Comparison):
        yield condition
    elif isinstance(condition, AllOf | AnyOf):
        for operand in condition.operands:
            yield from comparisons(operand)


def _direct(condition: Predicate) -> list[Comparison]:
    """The comparisons on which the condition stands directly: itself, or its own operands."""
    operands = condition.operands if isinstance(condition, AllOf | AnyOf) else (condition,)
    return [operand for operand in operands if isinstance(operand, Comparison)]


def check_target(trigger: Predicate, target: Predicate) -> None:
    """Refuse a target that is looser than the trigger on the same metric (rule K3)."""
    for metric in METRICS.values():
        fires = [c.lower for c in _direct(trigger) if c.metric == metric and c.lower is not None]
        holds = [c.upper for c in _direct(target) if c.metric == metric and c.upper is not None]
        if fires and not holds and any(c.metric == metric for c in _direct(target)):
            raise ValueError(
                f"target must bound {metric.name} from above, such as {metric.name} <= {min(fires) - 1}, got {target!r}"
            )
        if not fires or not holds:
            continue
        # What each side promises on this metric alone.
        fire = (max if isinstance(trigger, AllOf) else min)(fires)
        hold = (max if isinstance(target, AnyOf) else min)(holds)
        if hold >= fire:
            raise ValueError(
                f"target must not be looser than the trigger: expected {metric.name} <= {fire - 1} or less, "
                f"got {metric.name} <= {hold}"
            )
