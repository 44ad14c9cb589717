"""OpenAI Responses: every item type of the API, how items are tied, and what stays where it is."""

import copy
import json
from collections.abc import Iterator
from typing import Any, get_args, get_origin

import attrs
import pytest
from openai.types.beta import BetaResponseInputItem
from openai.types.conversations import ConversationItem
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseInputItem,
    ResponseInputItemParam,
    ResponseItem,
    ResponseOutputItem,
    ResponseOutputMessage,
)
from pydantic import TypeAdapter
from typing_extensions import get_type_hints

import chat_compaction as cc
from chat_compaction.formats import Media, Message, OpenAIChatFormat, OpenAIResponsesFormat, Part, PartKind, Role
from tests._shared import load_session, recorded_sessions

TEXT, REASONING, MEDIA, OPAQUE = PartKind.TEXT, PartKind.REASONING, PartKind.MEDIA, PartKind.OPAQUE
COMPACTION = PartKind.COMPACTION
CALL, RESULT, REFERENCE = PartKind.TOOL_CALL, PartKind.TOOL_RESULT, PartKind.REFERENCE
BASE64 = "QUJD" * 400
IMAGE, HIDDEN = (Media("image"),), (Media("encrypted_reasoning"),)
FORMAT = OpenAIResponsesFormat()
ASSISTANT, TOOL, SYSTEM, USER = Role.ASSISTANT, Role.TOOL, Role.SYSTEM, Role.USER


def read(raw: Any) -> Message:
    return FORMAT.read(raw, 0)


def item(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


def call(call_id: str = "c", **fields: Any) -> dict[str, Any]:
    return item("function_call", call_id=call_id, name="look", arguments="{}", **fields)


def output(call_id: Any = "c", said: Any = "seen") -> dict[str, Any]:
    return item("function_call_output", call_id=call_id, output=said)


def thought(**fields: Any) -> dict[str, Any]:
    return item("reasoning", id="rs_1", summary=[], **fields)


def message(role: str, *content: Any) -> dict[str, Any]:
    return {"role": role, "content": list(content)}


def said(text: str) -> dict[str, Any]:
    return item("output_text", text=text, annotations=[])


ANSWER = {**message("assistant", said("done")), "type": "message", "id": "msg_1", "status": "completed"}
SCREEN = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{BASE64}"}
TOOL_SCHEMA = {
    "type": "function",
    "name": "look",
    "parameters": {"type": "object", "properties": {"id": {"type": "string"}}},
    "strict": True,
}
SCHEMA_TEXT = json.dumps(TOOL_SCHEMA, separators=(",", ":"))
CLICK = {"type": "click", "button": "left", "x": 1, "y": 2}
PATCH = {"type": "update_file", "path": "a.py", "diff": "+1"}
EXEC = {"type": "exec", "command": ["ls"], "env": {}}
SEARCH = {"type": "search", "query": "oslo"}
FOUND = {"filename": "a.txt", "score": 0.5, "text": "found"}
CHUNK = {"stdout": "a.py", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}

# For each type an item, the role that it is read with, and its parts.
ITEMS: list[tuple[dict[str, Any], Role, list[Part]]] = [
    (ANSWER, ASSISTANT, [Part(TEXT, "done")]),
    (call(id="fc_1", status="completed"), ASSISTANT, [Part(CALL, "{}", "look", "c")]),
    (output(), TOOL, [Part(RESULT, "seen", call_id="c")]),
    (item("custom_tool_call", call_id="c", name="sh", input="ls"), ASSISTANT, [Part(CALL, "ls", "sh", "c")]),
    (item("custom_tool_call_output", call_id="c", output="a.py"), TOOL, [Part(RESULT, "a.py", call_id="c")]),
    (
        item("computer_call", id="cu_1", call_id="c", action=CLICK, pending_safety_checks=[], status="completed"),
        ASSISTANT,
        [Part(CALL, '{"type":"click","button":"left","x":1,"y":2}', "computer", "c")],
    ),
    (item("computer_call_output", call_id="c", output=SCREEN), TOOL, [Part(RESULT, call_id="c", media=IMAGE)]),
    (
        item("local_shell_call", id="ls_1", call_id="c", action=EXEC, status="completed"),
        ASSISTANT,
        [Part(CALL, '{"type":"exec","command":["ls"],"env":{}}', "local_shell", "c")],
    ),
    (item("local_shell_call_output", id="c", output="a.py"), TOOL, [Part(RESULT, "a.py", call_id="c")]),
    (
        item("shell_call", call_id="c", action={"commands": ["ls"]}),
        ASSISTANT,
        [Part(CALL, '{"commands":["ls"]}', "shell", "c")],
    ),
    (
        item("shell_call_output", call_id="c", output=[CHUNK]),
        TOOL,
        [Part(RESULT, '[{"stdout":"a.py","stderr":"","outcome":{"exit_code":0}}]', call_id="c")],
    ),
    (
        item("apply_patch_call", call_id="c", operation=PATCH, status="completed"),
        ASSISTANT,
        [Part(CALL, '{"type":"update_file","path":"a.py","diff":"+1"}', "apply_patch", "c")],
    ),
    (
        item("apply_patch_call_output", call_id="c", status="completed", output="ok"),
        TOOL,
        [Part(RESULT, "ok", call_id="c")],
    ),
    (
        item("tool_search_call", id="ts_1", call_id=None, execution="server", arguments={"q": "x"}, status="completed"),
        ASSISTANT,
        [Part(CALL, '{"q":"x"}', "tool_search")],
    ),
    (
        item("tool_search_output", id="to_1", call_id="c", execution="client", tools=[TOOL_SCHEMA], status="completed"),
        TOOL,
        [Part(RESULT, f"[{SCHEMA_TEXT}]", call_id="c")],
    ),
    (
        item("mcp_approval_request", id="mr_1", name="ask", server_label="wiki", arguments="{}"),
        ASSISTANT,
        [Part(CALL, "{}", "wiki.ask", "mr_1")],
    ),
    (
        item("mcp_approval_response", approval_request_id="mr_1", approve=True, reason="fine"),
        TOOL,
        [Part(RESULT, "true\nfine", call_id="mr_1")],
    ),
    (
        item("program", id="pg_1", call_id="c", code="tools.look()", fingerprint="f"),
        ASSISTANT,
        [Part(CALL, "tools.look()", "program", "c")],
    ),
    (
        item("program_output", id="po_1", call_id="c", result="42", status="completed"),
        ASSISTANT,
        [Part(RESULT, "42", call_id="c")],
    ),
    (
        item("mcp_call", id="mcp_1", name="ask", server_label="wiki", arguments="{}", output="page"),
        ASSISTANT,
        [Part(CALL, "{}", "wiki.ask", "mcp_1"), Part(RESULT, "page", call_id="mcp_1")],
    ),
    (
        item("web_search_call", id="ws_1", action=SEARCH, status="completed"),
        ASSISTANT,
        [Part(CALL, '{"type":"search","query":"oslo"}', "web_search", "ws_1"), Part(RESULT, call_id="ws_1")],
    ),
    (
        item("file_search_call", id="fs_1", queries=["oslo"], results=[FOUND], status="completed"),
        ASSISTANT,
        [
            Part(CALL, '["oslo"]', "file_search", "fs_1"),
            Part(RESULT, '[{"filename":"a.txt","score":0.5,"text":"found"}]', call_id="fs_1"),
        ],
    ),
    (
        item(
            "code_interpreter_call",
            id="ci_1",
            code="1+1",
            container_id="x",
            outputs=[{"type": "logs", "logs": "2"}, {"type": "image", "url": f"data:image/png;base64,{BASE64}"}],
            status="completed",
        ),
        ASSISTANT,
        [Part(CALL, "1+1", "code_interpreter", "ci_1"), Part(RESULT, "2", call_id="ci_1", media=IMAGE)],
    ),
    (
        item("image_generation_call", id="ig_1", result=BASE64, status="completed", revised_prompt="a cat"),
        ASSISTANT,
        [Part(CALL, "a cat", "image_generation", "ig_1"), Part(RESULT, call_id="ig_1", media=IMAGE)],
    ),
    (
        item(
            "mcp_list_tools",
            id="ml_1",
            server_label="wiki",
            tools=[{"name": "ask", "input_schema": {"type": "object"}}],
        ),
        ASSISTANT,
        [Part(OPAQUE, 'wiki\n[{"name":"ask","input_schema":{"type":"object"}}]')],
    ),
    (thought(encrypted_content=BASE64), ASSISTANT, [Part(REASONING, media=HIDDEN)]),
    (item("item_reference", id="msg_1"), ASSISTANT, [Part(REFERENCE)]),
    (item("compaction", id="cmp_1", encrypted_content=BASE64), SYSTEM, [Part(COMPACTION, media=HIDDEN)]),
    (item("compaction_trigger"), SYSTEM, [Part(OPAQUE)]),
    (
        item("additional_tools", role="developer", tools=[TOOL_SCHEMA]),
        SYSTEM,
        [Part(OPAQUE, f"[{SCHEMA_TEXT}]")],
    ),
    (item("configuration_update", reasoning={"effort": "low"}), SYSTEM, [Part(OPAQUE, '{"effort":"low"}')]),
]
BETA: list[tuple[dict[str, Any], Role, list[Part]]] = [
    (
        item("multi_agent_call", call_id="c", action="spawn_agent", arguments="{}"),
        ASSISTANT,
        [Part(CALL, "spawn_agent\n{}", "multi_agent", "c")],
    ),
    (
        item("multi_agent_call_output", call_id="c", action="spawn_agent", output=[said("done")]),
        ASSISTANT,
        [Part(RESULT, "done", call_id="c")],
    ),
    (
        item(
            "agent_message",
            author="/root",
            recipient="/team/scout",
            content=[
                {"type": "input_text", "text": "go"},
                {"type": "encrypted_content", "encrypted_content": BASE64},
            ],
        ),
        ASSISTANT,
        [Part(TEXT, "go"), Part(OPAQUE, media=HIDDEN)],
    ),
]
ALL = [*ITEMS, *BETA]
EACH = pytest.mark.parametrize(("raw", "role", "parts"), ALL, ids=[raw["type"] for raw, _, _ in ALL])


def types_of(union: Any) -> Iterator[str]:
    """The ``type`` of each item in a union of the SDK's."""
    if get_origin(union) is not None:
        for member in get_args(union)[:1] if hasattr(union, "__metadata__") else get_args(union):
            yield from types_of(member)
    elif hasattr(union, "model_fields"):
        yield from _literals(union.model_fields["type"].annotation)
    else:
        yield from _literals(get_type_hints(union)["type"])


def _literals(hint: Any) -> Iterator[str]:
    for value in get_args(hint):
        if isinstance(value, str):
            yield value
        elif value is not type(None):
            yield from _literals(value)


UNIONS: dict[str, Any] = {
    "input as a dict": ResponseInputItemParam,
    "input": ResponseInputItem,
    "output": ResponseOutputItem,
    "stored": ResponseItem,
    "conversation": ConversationItem,
    "beta": BetaResponseInputItem,
}


@pytest.mark.parametrize("union", UNIONS)
def test_every_type_of_the_api_is_known(union: str) -> None:
    """A type that the package has and this format has not is noticed here, and gets a sample above."""
    known = {raw["type"] for raw, _, _ in ALL}
    found = set(types_of(UNIONS[union]))
    assert len(found) > 20
    assert found - known == set()


@EACH
def test_items(raw: dict[str, Any], role: Role, parts: list[Part]) -> None:
    """C1, G2: each item type by its role and parts; base64 never counts, and the format knows its own."""
    before = copy.deepcopy(raw)
    view = read(raw)
    assert (view.role, list(view.parts)) == (role, parts)
    assert FORMAT.claims(raw)
    assert not OpenAIChatFormat().claims(raw)
    assert raw == before


@EACH
def test_the_sdks_objects_read_alike(raw: dict[str, Any], role: Role, parts: list[Part]) -> None:
    """The package's object of an item, its dump and the dict as sent are one view."""
    union = UNIONS["beta" if (raw, role, parts) in BETA else "input"]
    own: Any = TypeAdapter[Any](union).validate_python(raw)
    assert type(own).__module__.startswith("openai.types")
    assert read(own) == read(own.model_dump()) == read(own.model_dump(exclude_none=True))
    assert settled(read(own)) == settled(read(raw))
    assert FORMAT.claims(own)
    assert not OpenAIChatFormat().claims(own)


def test_codexs_other_name_of_a_compaction() -> None:
    """Codex reads ``compaction_summary`` as a compaction; no type of the package has that name."""
    raw = item("compaction_summary", encrypted_content=BASE64)
    assert read(raw) == read(item("compaction", encrypted_content=BASE64))
    assert FORMAT.claims(raw)


def settled(view: Message) -> Message:
    """The view with the keys of its JSON in order: an SDK's object has them in an order of its own."""
    parts = [attrs.evolve(part, text="\n".join(map(_settled, part.text.split("\n")))) for part in view.parts]
    return attrs.evolve(view, parts=tuple(parts))


def _settled(line: str) -> str:
    return json.dumps(json.loads(line), sort_keys=True) if line[:1] in ("{", "[") else line


# -- messages and content -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "ours"), [("user", USER), ("assistant", ASSISTANT), ("system", SYSTEM), ("developer", SYSTEM)]
)
@pytest.mark.parametrize("kind", [{}, {"type": "message"}, {"type": None}])
def test_messages(role: str, ours: Role, kind: dict[str, Any]) -> None:
    """G5: with or without a type; developer is a system role."""
    assert read({"role": role, "content": "words", **kind}) == Message(ours, (Part(TEXT, "words"),))
    assert read({"role": role, "content": "", **kind}) == read({"role": role, **kind}) == Message(ours)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (item("input_text", text="words"), Part(TEXT, "words")),
        (item("output_text", text="words", annotations=[{"type": "url_citation", "url": "u"}]), Part(TEXT, "words")),
        (item("text", text="words"), Part(TEXT, "words")),
        (item("summary_text", text="words"), Part(TEXT, "words")),
        (item("reasoning_text", text="words"), Part(TEXT, "words")),
        (item("refusal", refusal="I will not"), Part(TEXT, "I will not")),
        (item("input_image", image_url=f"data:image/png;base64,{BASE64}"), Part(MEDIA, media=IMAGE)),
        (item("input_image", file_id="f", detail="high"), Part(MEDIA, media=(Media("image", detail="high"),))),
        (item("input_file", file_data=BASE64, filename="a"), Part(MEDIA, media=(Media("document"),))),
        (item("input_audio", input_audio={"data": BASE64}), Part(MEDIA, media=(Media("audio"),))),
        (SCREEN, Part(MEDIA, media=IMAGE)),
        (item("brand_new", data=BASE64, note="words"), Part(OPAQUE, '{"note":"words"}', media=(Media("other"),))),
    ],
)
def test_content(part: dict[str, Any], expected: Part) -> None:
    """C1: text as it is, media by their rule; the same in a message and in a result."""
    assert read(message("user", part)).parts == (expected,)
    (result,) = read(output(said=[part])).parts
    assert (result.text, result.media) == (expected.text, expected.media)


def test_reasoning() -> None:
    """C1: summary and text count once where they say the same, what is encrypted flat; nothing is bound."""
    summary, content = [item("summary_text", text="hm")], [item("reasoning_text", text="hm")]
    both = thought(encrypted_content=BASE64) | {"summary": summary, "content": content}
    assert read(both).parts == (Part(REASONING, "hm", media=HIDDEN),)
    assert read(both | {"content": [item("reasoning_text", text="so")]}).parts[0].text == "hm\nso"
    assert read(thought()) == read(item("reasoning")) == Message(ASSISTANT, (Part(REASONING),))
    assert read(thought()).reasoning_only
    assert not read(both).signed


# -- ids ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "call_id"),
    [
        (item("function_call", id="fc_1", name="f", arguments=""), "fc_1"),
        (item("function_call", id="fc_1", call_id="", name="f", arguments=""), "fc_1"),
        (item("function_call", name="f", arguments=""), None),
        (item("function_call_output", id="fco_1", output=""), None),
        (item("local_shell_call_output", id="ls_1", call_id="c", output=""), "c"),
        (item("tool_search_call", id="ts_1", call_id="c", arguments={}), "c"),
        (item("tool_search_output", id="to_1", call_id=None, tools=[]), None),
        (item("web_search_call", action=SEARCH), None),
    ],
)
def test_what_ties(raw: dict[str, Any], call_id: str | None) -> None:
    """G2: ``call_id``, for a call its own id where that is missing; an output's own id ties nothing."""
    assert {part.call_id for part in read(raw).parts} == {call_id}


@pytest.mark.parametrize("space", ["namespace", "server_label"])
def test_names(space: str) -> None:
    """C1: a tool counts by the name that the model writes."""
    raw = item("function_call", call_id="c", name="look", arguments="{}")
    assert read({**raw, space: "crm"}).parts[0].name == "crm.look"
    assert read({**raw, space: None}).parts[0].name == "look"


def test_a_result_that_was_never_asked_for() -> None:
    """G4: what a program hands in as the output of a tool, with its name and without a call, is complete in itself."""
    raw = item("function_call_output", name="inbox", output="mail")
    assert read(raw) == Message(TOOL, (Part(CALL, name="inbox"), Part(RESULT, "mail")))
    history = [message("user"), call(), raw, output(), ANSWER]
    index = cc.MessageIndex.from_messages(history, format=FORMAT)
    assert index.problems == ()
    assert [group.positions for group in index.groups] == [(0,), (1, 3), (2,), (4,)]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (item("brand_new", id="x", note="words"), Message(ASSISTANT, (Part(OPAQUE, '{"note":"words"}'),))),
        (item("brand_new_output", note="words"), Message(TOOL, (Part(OPAQUE, '{"note":"words"}'),))),
        (item("new_call", call_id="c", n=1), Message(ASSISTANT, (Part(CALL, '{"call_id":"c","n":1}', call_id="c"),))),
        (
            item("new_call_output", call_id="c", n=1),
            Message(TOOL, (Part(RESULT, '{"call_id":"c","n":1}', call_id="c"),)),
        ),
        (item("brand_new", call_id=7), Message(ASSISTANT, (Part(OPAQUE, '{"call_id":7}'),))),
    ],
)
def test_unknown_types(raw: dict[str, Any], expected: Message) -> None:
    """C1, G2: a newer type counts by its JSON and never raises; one with a ``call_id`` stays with its other half."""
    assert read(raw) == expected
    assert not FORMAT.claims(raw)


# -- lists --------------------------------------------------------------------------------------

GO = message("user", item("input_text", text="go"))


@pytest.mark.parametrize(
    ("history", "groups", "rules"),
    [
        # One response is one group, reasoning and hosted tools included.
        (
            [GO, thought(), item("web_search_call", action=SEARCH), thought(), ANSWER, GO],
            [(0,), (1, 2, 3, 4), (5,)],
            [],
        ),
        (
            [GO, thought(), call("a"), call("b"), output("b"), output("a"), thought(), ANSWER],
            [(0,), (1, 2, 3, 4, 5), (6, 7)],
            [],
        ),
        # The server's search has no call_id on either side.
        (
            [
                GO,
                item("tool_search_call", id="1", call_id=None, execution="server", arguments={}),
                item("tool_search_output", id="2", call_id=None, execution="server", tools=[]),
                call(),
                output(),
            ],
            [(0,), (1, 2, 3, 4)],
            [],
        ),
        # A program's calls are answered before it is.
        (
            [
                GO,
                item("program", id="1", call_id="p", code=""),
                call("a"),
                output("a"),
                item("program_output", id="2", call_id="p", result=""),
                ANSWER,
            ],
            [(0,), (1, 2, 3, 4, 5)],
            [],
        ),
        (
            [GO, ITEMS[15][0], ITEMS[16][0], item("mcp_call", id="m", name="ask", arguments="{}"), ANSWER],
            [(0,), (1, 2), (3, 4)],
            [],
        ),
        ([GO, thought(), GO], [(0,), (1,), (2,)], ["reasoning_alone"]),
        ([GO, thought(), output("a")], [(0,), (1,), (2,)], ["orphan_result", "reasoning_alone"]),
        ([GO, call(), GO, ANSWER], [(0,), (1,), (2,), (3,)], ["unanswered_call"]),
        ([GO, call(), output(), output(), ANSWER], [(0,), (1, 2, 3), (4,)], ["duplicate_result"]),
    ],
)
def test_lists(history: list[Any], groups: list[tuple[int, ...]], rules: list[str]) -> None:
    """G2, K7: what stays together, and what the API refuses."""
    index = cc.MessageIndex.from_messages(history, format=OpenAIResponsesFormat(complete=True))
    assert [group.positions for group in index.groups] == groups
    assert sorted(problem.rule for problem in index.problems) == rules


def test_what_keeps_its_place() -> None:
    """G5: the server's compaction item, and what sets up the rest, never leave and stay where they are."""
    fixed = [item("compaction", encrypted_content=BASE64), item("configuration_update", reasoning={"effort": "low"})]
    history = [GO, ANSWER, fixed[0], *[GO, ANSWER] * 5, fixed[1], GO]
    strategy = cc.TruncationStrategy(trigger=cc.messages > 4, target=cc.messages <= 3, min_preserved_groups=1)
    context = cc.as_chat_reducer(strategy, format=FORMAT).reduce(history)
    assert context == [*fixed, GO]


# -- errors and detection -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({"type": 7, "role": "user"}, ".type must be a string, got 7"),
        ({"content": "private"}, ".role is missing (read as 'openai_responses'; format= names another)"),
        (message("tool"), ".role must be one of user, assistant, system, developer, got 'tool' (read as"),
        ({"role": "user", "content": 7}, ".content must be a string or a list, got 7"),
        (message("user", "private"), ".content[0] must be an object, got a str"),
        (message("user", {"text": "private"}), ".content[0].type is missing (read as"),
        (message("user", item("input_text", text=["private"])), ".content[0].text must be a string, got a list"),
        (output(said=[item("input_text", text=["private"])]), ".output[0].text must be a string, got a list"),
        (output(7), ".call_id must be a string, got 7"),
        (item("function_call", call_id="c", name=["private"]), ".name must be a string, got a list"),
        (item("mcp_call", id=7), ".id must be a string, got 7"),
    ],
)
def test_what_cannot_be_read(raw: dict[str, Any], text: str) -> None:
    """An error names position and path, and never quotes what was said."""
    with pytest.raises(cc.MessageError) as caught:
        FORMAT.read(raw, 3)
    assert str(caught.value).startswith(f"messages[3]{text}")
    assert caught.value.position == 3
    assert "private" not in str(caught.value)


def test_arguments_in_a_circle() -> None:
    """C1: data that no provider would take counts nothing, and never raises."""
    circle: dict[str, Any] = {}
    circle["again"] = circle
    assert read(item("shell_call", call_id="c", action=circle)).parts == (Part(CALL, name="shell", call_id="c"),)


@pytest.mark.parametrize(
    ("raw", "own"),
    [
        (message("user", item("input_text", text="hi")), True),
        (message("assistant", said("hi")), True),
        ({"role": "user", "content": "hi"}, False),
        ({"type": "message", "role": "user", "content": "hi"}, False),
        (message("user", item("text", text="hi")), False),
        (message("user", item("image_url", image_url="u")), False),
        ({"id": "msg_1"}, False),
        ({"type": "compaction", "summary": "in short"}, False),
        ({"type": "user", "message": {}}, False),
        (ResponseOutputMessage.model_validate(ANSWER), True),
        (None, False),
    ],
)
def test_what_tells(raw: Any, own: bool) -> None:
    """Only what no other format has tells; a message of plain text does not."""
    assert FORMAT.claims(raw) is own


def test_a_reference_may_have_no_type() -> None:
    """A reference is sent with or without its type."""
    assert read({"id": "msg_1"}) == read({"id": "msg_1", "type": None}) == read(item("item_reference", id="msg_1"))


# -- writing ------------------------------------------------------------------------------------


def test_without() -> None:
    """Parts of a message leave by their number; any other item leaves whole."""
    raw = message("user", item("input_text", text="1"), item("input_image", file_id="f", detail="low"))
    before = copy.deepcopy(raw)
    assert FORMAT.without(raw, {1}) == message("user", raw["content"][0])
    assert FORMAT.without(raw, {0, 1}) is None
    assert raw == before
    own = ResponseOutputMessage.model_validate({**ANSWER, "content": [said("1"), said("2")]})
    left = FORMAT.without(own, {0})
    assert isinstance(left, ResponseOutputMessage)
    assert TypeAdapter[Any](ResponseOutputItem).validate_python(left.model_dump()) == left
    assert [len(read(given).parts) for given in (left, own)] == [1, 2]


@EACH
def test_an_item_leaves_whole(raw: dict[str, Any], role: Role, parts: list[Part]) -> None:
    """A call, a result or reasoning is nothing without any of its parts."""
    assert FORMAT.without(raw, range(len(parts))) is None
    if raw["type"] not in ("message", "agent_message"):
        assert FORMAT.without(raw, {len(parts) - 1}) is None


@EACH
def test_renamed(raw: dict[str, Any], role: Role, parts: list[Part]) -> None:
    """A call and its result get another ``call_id``; ids that the server gave to its own tools stay."""
    before = copy.deepcopy(raw)
    tied = len(parts) == 1 and parts[0].kind in (CALL, RESULT) and not raw["type"].startswith("mcp_")
    if tied:
        written = FORMAT.renamed(raw, 0, "new")
        assert written is not None
        assert read(written).parts[0].call_id == "new"
        assert written["type"] == raw["type"]
    elif parts[0].kind is CALL:
        assert FORMAT.renamed(raw, 0, "new") is None
    assert raw == before


def test_renamed_objects() -> None:
    """An SDK's object is copied, and stays what it is."""
    own = ResponseFunctionToolCall.model_validate(call())
    written = FORMAT.renamed(own, 0, "new")
    assert isinstance(written, ResponseFunctionToolCall)
    assert (written.call_id, own.call_id) == ("new", "c")


# -- recorded sessions --------------------------------------------------------------------------

SPOKEN = {"text", "arguments", "name", "output", "code", "logs", "query", "revised_prompt", "description", "message"}


def spoken(value: Any, key: str = "") -> Iterator[str]:
    """The texts in a recorded item, taken without a reader."""
    if isinstance(value, str):
        if value and (key in SPOKEN or key == "content"):
            yield value
    elif isinstance(value, list):
        for entry in value:
            yield from spoken(entry, key)
    elif isinstance(value, dict):
        for name, entry in value.items():
            yield from spoken(entry, name)


def unescaped(text: str) -> str:
    """A text, and what it says where it is JSON."""
    try:
        return "\n".join([text, *spoken(json.loads(text))])
    except ValueError:
        return text


def test_all_that_was_said_counts() -> None:
    """C1: each text of each recorded item is in what a counter sees, and no base64."""
    kinds = set()
    for path in recorded_sessions("openai_responses"):
        for position, raw in enumerate(load_session(path)):
            kinds.add(raw.get("type", "message"))
            view = FORMAT.read(raw, position)
            seen = "\n".join([text for part in view.parts for text in (part.name, part.text)])
            seen += "\n".join(unescaped(line) for part in view.parts for line in part.text.splitlines())
            assert [text for text in spoken(raw) if text not in seen] == [], (path.name, position)
            hidden = raw.get("encrypted_content") or raw.get("result")
            assert not hidden or (hidden not in seen and any(part.media for part in view.parts))
            assert "base64," not in seen
    assert kinds >= {"reasoning", "function_call", "web_search_call", "mcp_call", "compaction", "image_generation_call"}


def test_recorded_sessions_are_given_back() -> None:
    """K8, K7: each recorded list breaks no rule, is told by its items, and comes back as the very same objects."""
    for path in recorded_sessions("openai_responses"):
        history = load_session(path)
        index = cc.MessageIndex.from_messages(history, format=FORMAT)
        assert index.problems == (), path.name
        assert any(map(FORMAT.claims, history)), path.name
        assert not any(map(OpenAIChatFormat().claims, history)), path.name
        assert all(ours is theirs for ours, theirs in zip(index.included_messages(), history, strict=True))
        assert history == load_session(path)


def test_recorded_items_as_objects() -> None:
    """What the SDK makes of a recorded item reads as the item does."""
    adapter: TypeAdapter[Any] = TypeAdapter(ResponseInputItem)
    read_as_object = 0
    for path in recorded_sessions("openai_responses"):
        for raw in load_session(path):
            # Codex leaves out ids, and gateways write their own; what the package takes must read alike.
            try:
                own = adapter.validate_python(raw)
            except ValueError:
                continue
            read_as_object += 1
            assert settled(read(own)) == settled(read(raw)), path.name
    assert read_as_object > 200


def test_repr_and_default() -> None:
    """A format is a value that prints as what makes it; a list may leave calls to the server."""
    assert repr(FORMAT) == "OpenAIResponsesFormat()"
    assert repr(OpenAIResponsesFormat(complete=True)) == "OpenAIResponsesFormat(complete=True)"
    assert FORMAT.complete is None
    assert FORMAT.runs
