"""What counts for media and encrypted reasoning."""

from typing import Any

import attrs
import pytest

from chat_compaction.counters import MediaCosts


@pytest.mark.parametrize(
    ("kind", "tokens"),
    [
        ("image", 1_600),
        ("audio", 1_920),
        ("document", 10_000),
        ("video", 17_400),
        ("encrypted_reasoning", 640),
        ("other", 1_600),
        ("hologram", 1_600),
        ("cost", 1_600),
        ("__class__", 1_600),
        ("", 1_600),
    ],
)
def test_each_kind_has_a_documented_cost(kind: str, tokens: int) -> None:
    """C1: a flat rule by kind; a kind that is not known costs as other."""
    assert MediaCosts().cost(kind) == tokens


@pytest.mark.parametrize("kind", [field.name for field in attrs.fields(MediaCosts)])
def test_each_cost_can_be_set(kind: str) -> None:
    """C1: the rule is settable, 0 included, kind by kind."""
    costs = MediaCosts(**{kind: 0})
    assert costs.cost(kind) == 0
    assert attrs.evolve(costs, **{kind: getattr(MediaCosts(), kind)}) == MediaCosts()


def test_a_value() -> None:
    """Frozen, equal to its equal, printed as the code that makes it."""
    costs = MediaCosts(image=800)
    assert eval(repr(costs)) == costs  # noqa: S307
    assert hash(costs) == hash(MediaCosts(image=800))
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        costs.image = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        ({"image": -1}, ValueError, "image must be an int of 0 or more, got -1"),
        ({"audio": True}, TypeError, "audio must be an int of 0 or more, got True"),
        ({"video": 1.5}, TypeError, "video must be an int of 0 or more, got 1.5"),
        ({"other": None}, TypeError, "other must be an int of 0 or more, got None"),
    ],
)
def test_wrong_costs(wrong: dict[str, Any], error: type[Exception], text: str) -> None:
    """Wrong arguments fail at construction."""
    with pytest.raises(error) as caught:
        MediaCosts(**wrong)
    assert str(caught.value) == text
