"""The tool with which an agent reads back: definitions that providers take, and an answer to whatever a model asks."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_compaction.offload import OffloadStore, RecallTool, handle_of, recall_tool
from tests.offload_faults import TEXT, fault, faulty_store, raises

STORE = OffloadStore("memory://tool")
HANDLE = STORE.put(TEXT)
TOOL = recall_tool(STORE)
LINES = TEXT.splitlines()
FORMATS = ["openai_chat", "openai_responses", "anthropic", "gemini", "bedrock_converse"]


# -- definitions -------------------------------------------------------------------------------------


def schema_of(definition: dict[str, Any], format: str) -> Any:
    return {
        "openai_chat": lambda: definition["function"]["parameters"],
        "openai_responses": lambda: definition["parameters"],
        "anthropic": lambda: definition["input_schema"],
        "gemini": lambda: definition["functionDeclarations"][0]["parameters"],
        "bedrock_converse": lambda: definition["toolSpec"]["inputSchema"]["json"],
    }[format]()


@pytest.mark.parametrize("format", FORMATS)
def test_every_definition_says_the_same(format: str) -> None:
    """The name, the limit and the arguments, in the shape of each API; a caller may change its own copy."""
    tool = recall_tool(STORE, name="look_up", max_characters=1_234)
    definition = tool.definition(format)
    assert '"look_up"' in json.dumps(definition)
    assert "at most 1,234 characters" in json.dumps(definition)
    schema = schema_of(definition, format)
    assert (list(schema["properties"]), schema["required"]) == (
        ["handle", "start", "end", "unit", "search"],
        ["handle"],
    )
    schema["properties"].clear()
    assert schema_of(tool.definition(format), format)["properties"]


def test_openai_takes_the_definitions() -> None:
    """The packages' own types of a request."""
    from openai.types.chat import ChatCompletionToolParam
    from openai.types.responses import FunctionToolParam
    from pydantic import TypeAdapter

    chat: Any = TOOL.definition("openai_chat")
    assert TypeAdapter(ChatCompletionToolParam).validate_python(chat) == chat
    responses: Any = TOOL.definition("openai_responses")
    assert TypeAdapter(FunctionToolParam).validate_python(responses) == responses


def test_anthropic_takes_the_definition() -> None:
    from anthropic.types import ToolParam
    from pydantic import TypeAdapter

    definition: Any = TOOL.definition("anthropic")
    assert TypeAdapter(ToolParam).validate_python(definition) == definition


def test_google_takes_the_definition() -> None:
    """As an object of its package, which knows no field beside its own."""
    from google.genai import types

    tool = types.Tool.model_validate(TOOL.definition("gemini"))
    assert tool.function_declarations is not None
    assert tool.function_declarations[0].name == "recall_offloaded"


def test_bedrock_takes_the_definition() -> None:
    """As boto3 checks a request before it sends it."""
    from botocore.session import get_session  # type: ignore[import-untyped]
    from botocore.validate import ParamValidator  # type: ignore[import-untyped]

    shape = get_session().get_service_model("bedrock-runtime").operation_model("Converse").input_shape
    request = {"modelId": "model", "toolConfig": {"tools": [TOOL.definition("bedrock_converse")]}}
    assert not ParamValidator().validate(request, shape).has_errors()


def test_an_unknown_format() -> None:
    with pytest.raises(ValueError, match=r"format must be one of 'openai_chat', .*, got 'sharegpt'"):
        TOOL.definition("sharegpt")


# -- reading -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_json", [True, False], ids=["json", "object"])
def test_a_range_of_lines(as_json: bool) -> None:
    """Numbered from 1, both ends included; the last line says what it was, and how to go on."""
    arguments = {"handle": HANDLE, "start": 3, "end": 5}
    answer = TOOL.call(json.dumps(arguments) if as_json else arguments)
    assert answer.splitlines() == [*LINES[2:5], "[lines 3-5; go on with start=6]"]


def test_the_whole_text() -> None:
    """Where it fits."""
    assert TOOL.call({"handle": HANDLE}) == TEXT + "[lines 1-200; the end of the text]"
    assert TOOL.call({"handle": STORE.put("no line feed")}) == "no line feed\n[lines 1-1; the end of the text]"


def test_characters() -> None:
    assert TOOL.call({"handle": HANDLE, "unit": "characters", "start": 1, "end": 6}).splitlines() == [
        "line 1",
        "[characters 1-6; go on with start=7]",
    ]


GOES_ON = re.compile(r"(.*)\n\[.*; (?:(the end).*|go on with start=(\d+)(?: and unit=\"(\w+)\")?)\]", re.DOTALL)


def read_on(tool: RecallTool, handle: str) -> tuple[str, int]:
    """The text as an agent reads it that does what the last line says; and how often it had to ask."""
    arguments: dict[str, Any] = {"handle": handle}
    text = ""
    for asked in range(1, 10_000):
        answer = tool.call(arguments)
        found = re.fullmatch(
            r"(?s)(.*)\n\[.*; (?:(the end)|go on with start=(\d+)(?: and unit=\"(\w+)\")?).*\]", answer
        )
        assert found, answer
        part, end, start, unit = found.groups()
        assert len(part) <= tool.max_characters
        text += part + ("\n" if arguments.get("unit", "lines") == "lines" and not (unit or end) else "")
        if end:
            return text, asked
        arguments = {"handle": handle, "start": int(start), "unit": unit or arguments.get("unit", "lines")}
    raise AssertionError("it never ends")


@given(lines=st.lists(st.text("ab é", max_size=30), max_size=12), most=st.integers(1, 50))
def test_an_agent_that_does_as_told_reads_everything(lines: list[str], most: int) -> None:
    """Whatever the limit: whole lines where they fit, else characters; each answer is bounded."""
    text = "\n".join(["x", *lines, "x"])
    assert read_on(recall_tool(STORE, max_characters=most), STORE.put(text))[0] == text


def test_long_texts_come_in_pieces_of_whole_lines() -> None:
    tool = recall_tool(STORE, max_characters=1_000)
    text, asked = read_on(tool, HANDLE)
    assert text == TEXT.removesuffix("\n")
    assert asked <= len(TEXT) // 900 + 1


def test_a_very_long_line_goes_on_by_characters() -> None:
    answer = recall_tool(STORE, max_characters=4).call({"handle": STORE.put("a\nbcdefgh"), "start": 2})
    assert answer == 'bcde\n[characters 3-6; go on with start=7 and unit="characters"]'


def test_behind_the_end() -> None:
    assert TOOL.call({"handle": HANDLE, "start": 300}) == "[nothing: the text ends ahead of lines 300]"
    assert TOOL.call({"handle": STORE.put("")}) == "[nothing: the text ends ahead of lines 1]"


# -- searching ---------------------------------------------------------------------------------------


def test_search() -> None:
    """What is found can be read by the numbers beside it."""
    answer = TOOL.call({"handle": HANDLE, "search": "LINE 19:"}).splitlines()
    assert answer == [f"line 19, character {TEXT.index('line 19:') + 1}: {LINES[18]}", "[1 place found]"]
    assert TOOL.call({"handle": HANDLE, "search": "nothing"}) == "[0 places found]"


def test_search_is_bounded() -> None:
    """By number and by size."""
    assert TOOL.call({"handle": HANDLE, "search": "line"}).splitlines()[-1] == "[50 places found, and there are more]"
    answer = recall_tool(STORE, max_characters=50).call({"handle": HANDLE, "search": "line"})
    assert answer.splitlines()[-1] == "[2 places found, and there are more]"
    assert sum(map(len, answer.splitlines()[:-1])) == 50


# -- whatever a model asks ---------------------------------------------------------------------------

ERRORS: list[tuple[Any, str]] = [
    ("", "handle is missing: give it exactly as it was shown"),
    ("{}", "handle is missing: give it exactly as it was shown"),
    ({"handle": None}, "handle is missing: give it exactly as it was shown"),
    ("{", "arguments must be a JSON object, and this is no JSON"),
    ("[" * 100_000, "arguments must be a JSON object, and this is no JSON"),
    ('{"start": ' + "9" * 5_000 + "}", "arguments must be a JSON object, and this is no JSON"),
    ("[]", "arguments must be a JSON object, got a list"),
    (None, "arguments must be a JSON object, got None"),
    ({"handle": "../x"}, "handle must be 'offload-' and 64 of the digits 0-9a-f, got '../x'"),
    ({"handle": 7}, "handle must be 'offload-' and 64 of the digits 0-9a-f, got 7"),
    ({"handle": handle_of("gone")}, f"{handle_of('gone')} is not in the store"),
    ({"handle": HANDLE, "path": "x"}, "arguments must be among handle, start, end, unit, search, got 'path'"),
    ({"handle": HANDLE, "start": 0}, "start must be an int of 1 or more, or None, got 0"),
    ({"handle": HANDLE, "start": True}, "start must be an int of 1 or more, or None, got True"),
    ({"handle": HANDLE, "end": "many"}, "end must be an int of 1 or more, or None, got 'many'"),
    ({"handle": HANDLE, "end": 1.5}, "end must be an int of 1 or more, or None, got 1.5"),
    ({"handle": HANDLE, "end": float("inf")}, "end must be an int of 1 or more, or None, got inf"),
    ({"handle": HANDLE, "end": [1]}, "end must be an int of 1 or more, or None, got [1]"),
    ({"handle": HANDLE, "start": 2, "end": 1}, "end must be at least start (2), got 1"),
    ({"handle": HANDLE, "unit": "words"}, "unit must be one of 'lines', 'characters', got 'words'"),
    ({"handle": HANDLE, "unit": ["lines"]}, "unit must be one of 'lines', 'characters', got ['lines']"),
    ({"handle": HANDLE, "search": 7}, "search must be a string, got 7"),
]


@pytest.mark.parametrize(("arguments", "message"), ERRORS, ids=map(str, range(len(ERRORS))))
def test_wrong_arguments_are_an_answer(arguments: Any, message: str) -> None:
    """Nothing is raised into the loop; the model reads what is wrong."""
    assert TOOL.call(arguments) == f"Error: {message}"


@pytest.mark.parametrize("number", [2, 2.0, "2"], ids=repr)
def test_numbers_as_models_write_them(number: Any) -> None:
    assert TOOL.call({"handle": HANDLE, "start": number, "end": number}).startswith("line 2:")


def test_null_is_not_given() -> None:
    """A provider's strict mode sends it for what the model leaves out."""
    arguments = {"handle": HANDLE, "start": None, "end": 1, "unit": None, "search": None}
    assert TOOL.call(arguments).startswith("line 1:")


def test_a_number_of_any_size() -> None:
    assert TOOL.call({"handle": HANDLE, "start": 199, "end": 10**30}).endswith("[lines 199-200; the end of the text]")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(HANDLE),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
NAMES = st.sampled_from(["handle", "start", "end", "unit", "search", "other"])


@given(arguments=JSON | st.dictionaries(NAMES, JSON) | st.text())
def test_nothing_is_ever_raised(arguments: Any) -> None:
    """And the answer is bounded."""
    assert len(recall_tool(STORE, max_characters=100).call(arguments)) < 1_000


def test_a_store_that_fails_is_an_answer(tmp_path: Path) -> None:
    """With no address or key in it."""
    store = faulty_store(tmp_path)
    handle = store.put(TEXT)
    with fault("cat_file", raises(TimeoutError("https://key:secret@host"))):
        assert recall_tool(store).call({"handle": handle}) == f"Error: {handle} cannot be read: TimeoutError"


def test_async() -> None:
    assert asyncio.run(TOOL.acall({"handle": HANDLE, "end": 1})) == TOOL.call({"handle": HANDLE, "end": 1})


# -- making one --------------------------------------------------------------------------------------


def test_it_is_a_value() -> None:
    assert recall_tool(STORE) == RecallTool(STORE)
    assert eval(repr(recall_tool(STORE, name="x"))) == recall_tool(STORE, name="x")  # noqa: S307
    assert hash(TOOL) == hash(RecallTool(STORE))


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"store": "folder"}, TypeError, "store must be an OffloadStore, got a str"),
        ({"name": ""}, ValueError, "name must be 1 to 64 of the characters a-z A-Z 0-9 _ -, got ''"),
        ({"name": "a tool"}, ValueError, "name must be 1 to 64 of the characters a-z A-Z 0-9 _ -, got 'a tool'"),
        ({"name": 7}, TypeError, "name must be a str, got 7"),
        ({"max_characters": 0}, ValueError, "max_characters must be an int of 1 or more, got 0"),
        ({"max_characters": 1.5}, TypeError, "max_characters must be an int of 1 or more, got 1.5"),
    ],
    ids=str,
)
def test_wrong_arguments(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        recall_tool(**{"store": STORE, **arguments})
    assert str(caught.value) == text
