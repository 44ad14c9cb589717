"""What counts for media and encrypted reasoning: flat figures, and the providers' rules."""

from collections.abc import Callable
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat_compaction.counters import AnthropicMediaCosts, GeminiMediaCosts, MediaCosts, OpenAIMediaCosts
from chat_compaction.formats import Media

FLAT = tuple(field.name for field in attrs.fields(MediaCosts))
PROVIDERS = (OpenAIMediaCosts, AnthropicMediaCosts, GeminiMediaCosts)
MODELS = ("", "gpt-4o", "gpt-5.4", "gpt-6-astra", "claude-haiku-4-5", "claude-opus-5", "gemini-2.5-pro", "gemini-3-pro")


def image(width: int, height: int, detail: str = "") -> Media:
    return Media("image", width, height, detail=detail)


# -- flat ----------------------------------------------------------------------------------------


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
    """C1: a flat rule by kind, whatever the size; a kind that is not known costs as other."""
    assert MediaCosts().cost(Media(kind)) == tokens
    assert MediaCosts().cost(Media(kind, 4000, 3000, pages=90, seconds=90.0, detail="high")) == tokens


@pytest.mark.parametrize("kind", FLAT)
@pytest.mark.parametrize("costs", [MediaCosts, *PROVIDERS])
def test_each_cost_can_be_set(costs: Callable[..., MediaCosts], kind: str) -> None:
    """C1: the rule is settable, 0 included, kind by kind; a provider's counts by it what has no size."""
    free = costs(**{kind: 0})
    assert free.cost(Media(kind)) == 0
    assert attrs.evolve(free, **{kind: getattr(costs(), kind)}) == costs()


@pytest.mark.parametrize(
    "costs",
    [
        MediaCosts(image=800),
        OpenAIMediaCosts(model="gpt-4o", audio_second=20),
        AnthropicMediaCosts(model="claude-haiku-4-5", page=3_000),
        GeminiMediaCosts(resolution="low", video=0),
    ],
    ids=lambda costs: type(costs).__name__,
)
def test_a_value(costs: MediaCosts) -> None:
    """Frozen, equal to its equal, printed as the code that makes it."""
    assert eval(repr(costs)) == costs  # noqa: S307
    assert hash(costs) == hash(attrs.evolve(costs))
    assert costs != attrs.evolve(costs, other=1)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        costs.image = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("costs", "wrong", "error", "text"),
    [
        (MediaCosts, {"image": -1}, ValueError, "image must be an int of 0 or more, got -1"),
        (MediaCosts, {"audio": True}, TypeError, "audio must be an int of 0 or more, got True"),
        (MediaCosts, {"video": 1.5}, TypeError, "video must be an int of 0 or more, got 1.5"),
        (MediaCosts, {"other": None}, TypeError, "other must be an int of 0 or more, got None"),
        (OpenAIMediaCosts, {"model": None}, TypeError, "model must be the name of a model, got None"),
        (OpenAIMediaCosts, {"audio_second": -1}, ValueError, "audio_second must be an int of 0 or more, got -1"),
        (AnthropicMediaCosts, {"page": 1.0}, TypeError, "page must be an int of 0 or more, got 1.0"),
        (
            GeminiMediaCosts,
            {"resolution": "HIGH"},
            ValueError,
            "resolution must be one of '', 'low', 'medium', 'high', 'ultra_high', got 'HIGH'",
        ),
    ],
)
def test_wrong_costs(
    costs: Callable[..., MediaCosts], wrong: dict[str, Any], error: type[Exception], text: str
) -> None:
    """Wrong arguments fail at construction."""
    with pytest.raises(error) as caught:
        costs(**wrong)
    assert str(caught.value) == text


# -- OpenAI --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "picture", "tokens"),
    [
        # The examples of OpenAI's page, with their arithmetic.
        ("gpt-4o", image(1024, 1024, "high"), 765),
        ("gpt-4o", image(2048, 4096, "high"), 1105),
        ("gpt-4o", image(4096, 8192, "low"), 85),
        ("gpt-6-astra", image(1024, 1024, "high"), 1229),
        ("gpt-6-astra", image(2048, 2048, "high"), 3000),
        ("gpt-6-astra", image(4096, 512, "high"), 2458),
        ("gpt-5.4", image(2048, 2048, "high"), 3000),
        # What others measured in 2026, with detail not given and "high".
        ("gpt-6-astra", image(256, 256), 77),
        ("gpt-6-astra", image(4032, 3024), 14_364),
        ("gpt-6-astra", image(4032, 3024, "high"), 2_942),
        ("gpt-6-astra", image(2560, 1440, "high"), 2_931),
        ("gpt-5.5", image(4032, 3024), 11_868),
        ("gpt-5.5", image(3840, 2160), 9_792),
        # By hand.
        ("gpt-4o", image(512, 512), 85 + 170),
        ("gpt-4o", image(100, 100), 85 + 170),
        ("gpt-4o", image(20_000, 10), 85 + 4 * 170),
        ("gpt-4o-mini", image(512, 512), 2833 + 5667),
        ("gpt-5", image(512, 512), 70 + 140),
        ("o3", image(512, 512), 75 + 150),
        ("gpt-6-sol", image(4000, 3000, "low"), 231),
        ("gpt-6-astra", image(65_535, 65_535), 35_915),  # Refused; as if scaled to the 30,000 patches of the limit.
        ("gpt-5.4", image(2048, 2048), 3000),
        ("gpt-5.4", image(2048, 2048, "low"), 4916),
        ("gpt-5.4", image(2048, 2048, "original"), 4916),
        ("gpt-5.2", image(4096, 4096), 4916),
        ("gpt-4.1-mini", image(1536, 2048), 4977),
        ("gpt-4.1-nano", image(32, 32), 3),
        ("gpt-6-astra", image(100_000, 1), 2458),
    ],
)
def test_openai_images(model: str, picture: Media, tokens: int) -> None:
    """C1: tiles, or patches within the limits of the detail, as OpenAI's page has it; either way up."""
    turned = attrs.evolve(picture, width=picture.height, height=picture.width)
    assert [OpenAIMediaCosts(model=model).cost(each) for each in (picture, turned)] == [tokens, tokens]


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("gpt-4o-2024-11-20", "gpt-4o"),
        ("openai/gpt-4o", "gpt-4o"),
        ("ft:gpt-4o-2024-08-06:acme::A1", "gpt-4o"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("gpt-5.4-nano", "gpt-5.4"),
        ("gpt-5-mini-2025-08-07", "gpt-5-mini"),
        ("gpt-5-2025-08-07", "gpt-5"),
        ("azure/gpt-4.1-mini", "gpt-4.1-mini"),
        ("gpt-5.77", ""),
        ("gpt-60", ""),
        ("llama-4", ""),
    ],
)
def test_openai_names(name: str, known: str) -> None:
    """C1: the longest name that is listed; a version that is not is no older one."""
    pictures = [image(1600, 900, detail) for detail in ("", "low", "high")]
    for picture in pictures:
        assert OpenAIMediaCosts(model=name).cost(picture) == OpenAIMediaCosts(model=known).cost(picture)


@pytest.mark.parametrize("picture", [image(100, 100), image(512, 512, "low"), image(3000, 2000), image(900, 1600)])
def test_openai_without_a_model(picture: Media) -> None:
    """C1: on the high side where the model is not known."""
    costs = [OpenAIMediaCosts(model=model).cost(picture) for model in ("gpt-4o", "gpt-6-astra")]
    assert OpenAIMediaCosts().cost(picture) == max(costs)


@pytest.mark.parametrize(
    ("model", "detail", "tokens"),
    [
        ("", "", 3000),
        ("", "low", 308),
        ("gpt-4o", "", 85 + 8 * 170),
        ("gpt-4o", "low", 85),
        ("gpt-5.4", "low", 3000),
        ("gpt-6-astra", "high", 3000),
    ],
)
def test_openai_images_of_unknown_size(model: str, detail: str, tokens: int) -> None:
    """C1: the flat figure, or the most that one can cost."""
    assert OpenAIMediaCosts(model=model).cost(Media("image", detail=detail)) == tokens


def test_openai_sound_and_documents() -> None:
    """C1: by the second, begun ones whole in tokens, and by the page."""
    costs = OpenAIMediaCosts()
    assert costs.cost(Media("audio", seconds=60.0)) == 600
    assert costs.cost(Media("audio", seconds=0.01)) == 1
    assert attrs.evolve(costs, audio_second=20).cost(Media("audio", seconds=60.0)) == 1200
    assert costs.cost(Media("document", pages=7)) == 7 * costs.page
    assert costs.cost(Media("video", seconds=60.0)) == costs.video


# -- Anthropic -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "picture", "tokens"),
    [
        # The examples of Anthropic's pages: the size that the model sees is given there.
        ("claude-opus-5", image(200, 200), 64),
        ("claude-opus-5", image(1000, 1000), 1296),
        ("claude-opus-5", image(1092, 1092), 1521),
        ("claude-haiku-4-5", image(1920, 1080), 52 * 30),
        ("claude-haiku-4-5", image(1075, 1520), 33 * 47),
        ("claude-haiku-4-5", image(6000, 4000), 48 * 32),
        ("claude-opus-4-7", image(3840, 2160), 92 * 52),
        ("claude-opus-4-7", image(6000, 4000), 84 * 56),
        ("claude-opus-4-7", image(3024, 1964), 85 * 56),
        # By hand: the edge is what limits a panorama.
        ("claude-opus-5", image(8000, 280), 92 * 4),
        ("claude-haiku-4-5", image(8000, 280), 56 * 2),
        ("claude-opus-5", image(1, 1), 1),
        ("claude-opus-5", image(1_000_000, 1), 92),
        ("", image(3840, 2160), 92 * 52),
    ],
)
def test_anthropic_images(model: str, picture: Media, tokens: int) -> None:
    """C1: patches of 28 pixels, scaled down to the model's limits; either way up."""
    turned = attrs.evolve(picture, width=picture.height, height=picture.width)
    assert [AnthropicMediaCosts(model=model).cost(each) for each in (picture, turned)] == [tokens, tokens]


@pytest.mark.parametrize(
    ("model", "most"),
    [
        ("claude-3-5-sonnet-20241022", 1568),
        ("claude-3-opus-20240229", 1568),
        ("claude-sonnet-4-20250514", 1568),
        ("claude-opus-4-1-20250805", 1568),
        ("us.anthropic.claude-opus-4-6-v1:0", 1568),
        ("anthropic/claude-sonnet-4.5", 1568),
        ("claude-opus-4-7", 4784),
        ("claude-opus-4-10", 4784),
        ("claude-sonnet-5-5", 4784),
        ("claude-opus-5", 4784),
        ("amazon.nova-pro-v1:0", 4784),
        ("", 4784),
    ],
)
def test_anthropic_models(model: str, most: int) -> None:
    """C1: the limits are higher from Claude 4.7 on; an unknown model has those, and an unknown size costs the most."""
    assert AnthropicMediaCosts(model=model).cost(Media("image")) == most


def test_anthropic_documents() -> None:
    """C1: by the page."""
    assert AnthropicMediaCosts().cost(Media("document", pages=3)) == 3 * (3000 + 1568)
    assert AnthropicMediaCosts(page=2000).cost(Media("document", pages=3)) == 6000
    assert AnthropicMediaCosts().cost(Media("audio", seconds=3.0)) == MediaCosts().audio


# -- Gemini --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("costs", "media", "tokens"),
    [
        (GeminiMediaCosts(), image(256, 256), 1120),
        (GeminiMediaCosts(), Media("image"), 1120),
        (GeminiMediaCosts(), image(4000, 3000, "low"), 280),
        (GeminiMediaCosts(), image(4000, 3000, "medium"), 560),
        (GeminiMediaCosts(), image(4000, 3000, "ultra_high"), 2240),
        (GeminiMediaCosts(resolution="medium"), Media("image"), 560),
        (GeminiMediaCosts(resolution="medium"), Media("image", detail="high"), 1120),
        (GeminiMediaCosts(model="models/gemini-3-pro-preview"), image(960, 540), 1120),
        (GeminiMediaCosts(image=900), image(960, 540), 900),
        (GeminiMediaCosts(), Media("document", pages=5), 5 * 560),
        (GeminiMediaCosts(resolution="high"), Media("document", pages=5), 5 * 1120),
        (GeminiMediaCosts(page=900), Media("document", pages=5), 5 * 900),
        (GeminiMediaCosts(), Media("video", seconds=10.0), 10 * (70 + 32)),
        (GeminiMediaCosts(), Media("video", seconds=10.0, detail="high"), 10 * (280 + 32)),
        (GeminiMediaCosts(), Media("audio", seconds=10.0), 320),
        (GeminiMediaCosts(audio_second=25), Media("audio", seconds=10.0), 250),
        (GeminiMediaCosts(model="gemini-2.5-pro"), image(384, 384), 258),
        (GeminiMediaCosts(model="gemini-2.5-pro"), image(960, 540), 6 * 258),
        (GeminiMediaCosts(model="gemini-2.5-pro"), image(540, 960), 6 * 258),
        (GeminiMediaCosts(model="gemini-2.5-pro"), image(4000, 3000), 6 * 4 * 258),
        (GeminiMediaCosts(model="gemini-2.5-pro"), image(3000, 10), 12 * 258),
        (GeminiMediaCosts(model="gemini-2.5-pro"), image(4000, 3000, "low"), 66),
        (GeminiMediaCosts(model="gemini-2.5-pro", resolution="low"), Media("image"), 66),
        (GeminiMediaCosts(model="gemini-2.5-pro", image=7), Media("image"), 7),
        (GeminiMediaCosts(model="gemini-2.5-pro"), Media("document", pages=5), 5 * 258),
        (GeminiMediaCosts(model="gemini-2.5-pro"), Media("video", seconds=10.0), 10 * 290),
        (GeminiMediaCosts(model="gemini-2.5-pro"), Media("audio", seconds=10.0), 320),
    ],
)
def test_gemini(costs: GeminiMediaCosts, media: Media, tokens: int) -> None:
    """C1: by resolution from Gemini 3 on, by tiles before."""
    assert costs.cost(media) == tokens


# -- any -----------------------------------------------------------------------------------------

SIDES = st.none() | st.integers(-5, 100_000) | st.sampled_from([0, 2**32 - 1])
MEDIA = st.builds(
    Media,
    kind=st.sampled_from(FLAT),
    width=SIDES,
    height=SIDES,
    pages=st.none() | st.integers(0, 10_000),
    seconds=st.none() | st.floats(0, 1e6),
    detail=st.sampled_from(["", "low", "medium", "high", "original", "auto", "ultra_high", "else"]),
)


@given(MEDIA, st.sampled_from(PROVIDERS), st.sampled_from(MODELS))
def test_a_cost_is_never_negative(media: Media, costs: Callable[..., MediaCosts], model: str) -> None:
    """C4: a whole number of 0 or more, whatever the size; what has a size costs something."""
    tokens = costs(model=model).cost(media)
    assert isinstance(tokens, int)
    assert tokens >= 0
    if media.kind == "image":
        assert 0 < tokens <= 50_000 or model == "gemini-2.5-pro"


@given(st.integers(1, 9000), st.integers(1, 9000), st.sampled_from(["gpt-4o", "gpt-5.5", "gpt-6-astra"]))
def test_openai_never_exceeds_its_budget(width: int, height: int, model: str) -> None:
    """C1: no image costs more than one of unknown size can."""
    costs = OpenAIMediaCosts(model=model, image=10**9)
    assert costs.cost(image(width, height, "high")) <= costs.cost(Media("image", detail="high"))


@given(st.integers(1, 9000), st.integers(1, 9000), st.sampled_from(["claude-haiku-4-5", "claude-opus-5"]))
def test_anthropic_agrees_with_the_older_formula(width: int, height: int, model: str) -> None:
    """C1: within the limits, and where nothing is scaled, width x height / 750 and the rim."""
    most = AnthropicMediaCosts(model=model).cost(Media("image"))
    tokens = AnthropicMediaCosts(model=model).cost(image(width, height))
    assert tokens <= most
    if max(width, height) <= 1000:
        assert width * height / 784 <= tokens <= (width + 27) * (height + 27) / 784
