"""The picture of a history before and after a compaction."""

import copy
from typing import Any

import pytest

import chat_compaction as cc
from chat_compaction.strategies.summarization import SummarizationStrategy
from chat_compaction.testing import _picture, characters_counter, picture
from tests.build import (
    CHAT,
    Drop,
    anthropic_step,
    call,
    drop,
    index_of,
    result,
    said,
    signed,
    step,
    system,
    thought,
    user,
)


def drawn(strategy: cc.CompactionStrategy, history: list[Any], **settings: Any) -> list[str]:
    """The lines of a picture that counts characters."""
    return picture(strategy, history, **{"counter": characters_counter(), **settings}).splitlines()


KEEP = drop(cc.never)


def test_one_line_a_message_and_the_report() -> None:
    """What leaves says why, what stays says so, and the last line is the report's."""
    assert drawn(drop(cc.messages > 3), CHAT) == [
        "   before            after",
        "0  user       one    out: drop",
        "1  assistant  two    out: drop",
        "2  user       three  out: drop",
        "3  assistant  four   kept",
        "4  user       five   kept",
        "5  assistant  six    kept",
        "Drop: 6 -> 3 messages, 22 -> 11 tokens, stopped by: target, fits",
    ]


def test_a_call_is_shown_as_it_would_be_written() -> None:
    """Arguments that are an object as keywords, others as they are."""
    history = [user(), call("a", "b", "c", text="I look."), *map(result, "abc")]
    arguments = ['{"path": "a.py", "lines": [1, 2]}', "not JSON", "[1]"]
    for made, text in zip(history[1]["tool_calls"], arguments, strict=True):
        made["function"]["arguments"] = text
    lines = drawn(KEEP, history)
    assert lines[2] == '1  call    I look. look(path="a.py", lines=[1, 2...  kept'
    history[1]["tool_calls"].pop(0)
    assert drawn(KEEP, history[:2])[2] == "1  call    I look. look(not JSON) look([1])  kept"


def test_a_text_takes_one_line_and_forty_characters() -> None:
    """A page shows it without wrapping."""
    lines = drawn(KEEP, [user("a\n\n  b\tc"), said("x" * 41), said("y" * 40), said("")])
    assert [line.split("  ", 2)[2].strip() for line in lines[1:-1]] == [
        "a b c" + " " * 37 + "kept",
        "x" * 37 + "...  kept",
        "y" * 40 + "  kept",
        "kept",
    ]
    assert max(map(len, lines[:-1])) < 100


@pytest.mark.parametrize(
    ("message", "kind", "text"),
    [
        (system("rules"), "system", "rules"),
        (thought("hm"), "reasoning", "(thinking) hm"),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://a.b/c.png"}}]},
            "user",
            "[image]",
        ),
        (result("never made", "seen"), "result", "seen"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_kinds(message: Any, kind: str, text: str) -> None:
    """The role, or what says more: a call, a result, reasoning; media by their kind."""
    line = drawn(KEEP, [message, user("x")])[1]
    assert line.split() == ["0", kind, *text.split(), "kept"]


def test_results_of_anthropic_are_results() -> None:
    """Although they stand in a user's message."""
    lines = drawn(KEEP, [user(), *anthropic_step("a", "b")])
    assert lines[2:4] == ["1  call    look() look()  kept", "2  result  seen seen      kept"]


def test_a_summary_stands_where_it_is_written() -> None:
    """And what it stands for is out; in a list that is loaded again it is known for one."""
    history = [user("a" * 200), said("b" * 200), user("c"), said("d")]
    strategy = SummarizationStrategy(
        lambda _: "They greeted.", trigger=cc.messages > 3, min_preserved_groups=2, max_summary_tokens=300
    )
    lines = drawn(strategy, history)
    assert [line.split("  ")[-1] for line in lines[1:5]].count("out: summary") == 1
    assert [line.split("  ")[-1][:3] for line in lines[1:5]].count("-> ") == 1
    index = index_of(history)
    strategy.compact(index)
    assert drawn(KEEP, index.included_messages())[1].split()[1] == "summary"


def test_a_compaction_of_the_providers() -> None:
    """It stands for what was ahead of it, in words or encrypted."""
    block = {"type": "compaction", "content": "They talked."}
    lines = drawn(KEEP, [user("a"), {"role": "assistant", "content": [block]}, user("b")], format="anthropic")
    assert lines[2] == "1  compaction  They talked.  kept"
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAAAB"}
    lines = drawn(KEEP, [user("a"), item, user("b")], format="openai_responses")
    assert lines[2] == "1  compaction  (encrypted)  kept"


def test_what_is_sent_changed_is_shown() -> None:
    """Behind an arrow: here without its signed thinking."""
    history = [user("one"), said("two"), user("three"), signed("four", "hm")]
    lines = drawn(drop(cc.messages > 2), history, bound_reasoning="drop")
    assert lines[-2] == "3  assistant  (thinking) hm four  -> four"


def test_a_late_change_is_shown_from_where_it_is() -> None:
    """Where the first half of what is shown is the same, it starts a little ahead of the difference."""
    old, new = "the same words and the same again, then OLD", "the same words and the same again, then NEW words"
    assert _picture._changed(old, new) == "...n, then NEW words"
    assert _picture._changed("short OLD", "short NEW") == "short NEW"
    assert _picture._changed("short OLD", "short" + " NEW" * 20) == "short NEW NEW NEW NEW NEW NEW NEW NEW..."


def test_the_history_is_not_touched() -> None:
    """K8."""
    history = [user(), *step("a"), said()]
    before = copy.deepcopy(history)
    picture(drop(cc.always, cc.never), history)
    assert history == before


def test_what_is_no_strategy() -> None:
    with pytest.raises(TypeError, match="strategy must be a CompactionStrategy, got an ABCMeta"):
        picture(Drop, CHAT)  # type: ignore[arg-type]
