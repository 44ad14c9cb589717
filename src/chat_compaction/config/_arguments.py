"""The arguments of a class's constructor: what the keys of its table are."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from functools import cache
from types import SimpleNamespace
from typing import Any, get_type_hints

import attrs

_NONE_GIVEN = object()
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@attrs.frozen
class Argument:
    """An argument: its name, the attribute that holds it, its type, and its default."""

    name: str
    attribute: str
    type: Any
    _default: Any = _NONE_GIVEN

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self._default is _NONE_GIVEN

    def is_default(self, value: Any) -> bool:
        """Whether a value is what stands there if nothing is given."""
        default = self._default
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
            # One that is made of other arguments is always said.
            default = _NONE_GIVEN if default.takes_self else default.factory()
        return type(value) is type(default) and bool(value == default)


@cache
def arguments_of(cls: type) -> dict[str, Argument]:
    """The arguments of a class by name: of an attrs class, a dataclass, or any whose constructor says its types.

    Raises NameError where a type cannot be resolved at run time.
    """
    fields = {field.alias: field for field in attrs.fields(cls) if field.init} if attrs.has(cls) else {}
    parameters = [one for one in inspect.signature(cls).parameters.values() if one.kind not in _VARIABLE]
    attributes = {one.name: fields[one.name].name if one.name in fields else one.name for one in parameters}
    types = _types(cls, set(attributes.values()))
    return {
        one.name: Argument(one.name, attribute, types.get(attribute, Any), _default(one, fields.get(one.name)))
        for one, attribute in zip(parameters, attributes.values(), strict=True)
    }


def _default(parameter: inspect.Parameter, field: attrs.Attribute[Any] | None) -> Any:
    # A default that is made anew each time shows in the field only.
    default = field.default if field is not None and parameter.default is attrs.NOTHING else parameter.default
    return _NONE_GIVEN if default is parameter.empty else default


def _types(cls: type, names: set[str]) -> dict[str, Any]:
    """The types of these attributes, or else of these arguments of the constructor."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        found |= _resolved(vars(base).get("__annotations__", {}), names, vars(base).get("__init__"), base)
    made = inspect.getattr_static(cls, "__init__")
    return found | _resolved(getattr(made, "__annotations__", {}), names - found.keys(), made, cls)


def _resolved(said: Mapping[str, Any], names: set[str], function: Any, cls: type) -> dict[str, Any]:
    # A class may name the module that people import it from: a function of its own knows where it was made.
    words = getattr(function, "__globals__", None) or vars(sys.modules[cls.__module__])
    return {name: _type(annotation, words) for name, annotation in said.items() if name in names}


def _type(annotation: Any, words: dict[str, Any]) -> Any:
    try:
        return get_type_hints(SimpleNamespace(__annotations__={"it": annotation}), words)["it"]
    except NameError:
        # An alias from another module may have words of that module inside: what is outermost has to do.
        return eval(annotation, words) if isinstance(annotation, str) else annotation  # noqa: S307  # of a class
