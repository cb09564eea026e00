"""What a value has to be, and the sentence on one that isn't, for options, settings and records."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, get_args

if TYPE_CHECKING:
    from pydantic import ValidationError

_KINDS = {
    **{"integer": "a whole number", "number": "a number", "string": "a text", "boolean": "true or false"},
    "object": "a table",
}
_BOUNDS = {"exclusiveMinimum": "above", "minimum": "of at least", "exclusiveMaximum": "below", "maximum": "at most"}


def accepted(about: Mapping[str, Any]) -> str:
    """Describe the values that a JSON Schema accepts: ``a whole number from 1 to 10``. ``null`` isn't mentioned."""
    if "enum" in about:
        return f"one of {', '.join(map(str, about['enum']))}"
    if "const" in about:
        return str(about["const"])
    if "anyOf" in about:
        ways = [accepted(one) for one in about["anyOf"] if one.get("type") != "null"]
        return ", or ".join(dict.fromkeys(ways))
    if about.get("type") == "array":
        return f"a list of {', '.join(about.get('items', {}).get('enum', ['texts']))}"
    kind = _KINDS.get(about.get("type", ""), "another value")
    if "minimum" in about and "maximum" in about:
        return f"{kind} from {about['minimum']:,} to {about['maximum']:,}"
    bounds = [f"{words} {about[one]:,}" for one, words in _BOUNDS.items() if one in about]
    return f"{kind} {' and '.join(bounds)}" if bounds else kind


def refused(called: str, about: Mapping[str, Any], given: object) -> str:
    """Return the sentence on a value that a JSON Schema doesn't accept, with the name that may have been meant."""
    from textgames.names import did_you_mean  # here, since --help can do without gymnasium

    near = did_you_mean(given, about.get("enum", ())) if isinstance(given, str) else ""
    return f"{called} must be {accepted(about)}, got {shown(given)}{near}"


def typed(
    called: str, given: Any, hint: Any, refusal: Callable[[str], Exception], bounds: Mapping[str, Any] | None = None
) -> Any:
    """Return a value as a type within bounds, of a text the number that it is; else raise what ``refusal`` makes."""
    from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
    from pydantic.json_schema import GenerateJsonSchema

    class Lenient(GenerateJsonSchema):  # types may hold classes that no JSON is of
        def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> dict[str, Any]:
            return {}

    bounded: Any = Annotated[hint, Field(**(bounds or {}))]
    adapter = TypeAdapter[Any](bounded, config=ConfigDict(allow_inf_nan=False, arbitrary_types_allowed=True))
    inside = given
    try:
        if not isinstance(given, bool) or {bool, Any} & {hint, *get_args(hint)}:  # pydantic would take true for 1
            return adapter.validate_python(given)
    except ValidationError as error:
        inside = error.errors()[0]["input"]
    about = adapter.json_schema(schema_generator=Lenient)
    raise refusal(refused(called, about["items"], inside) if "items" in about else refused(called, about, given))


def refusals(
    error: "ValidationError",
    given: Mapping[str, Any],
    known: Mapping[str, Mapping[str, Any]],
    unknown: Callable[[str], str],
) -> list[str]:
    """Describe the errors that pydantic found in settings, a sentence each; ``known`` is ``{setting: JSON Schema}``."""
    wrong: dict[str, str] = {}
    for one in error.errors():
        setting = str(one["loc"][0]) if one["loc"] else ""
        if not setting:  # values that are each right and contradict each other
            wrong[setting] = str(one["ctx"]["error"] if "ctx" in one else one["msg"])
        elif setting not in known:
            wrong[setting] = unknown(setting)
        elif setting not in given:
            wrong[setting] = f"{setting} is missing"
        else:
            wrong[setting] = refused(setting, known[setting], given[setting])
    return list(wrong.values())


def problem_of(error: "ValidationError", place: str = "") -> str:
    """Describe the first error in a document, called ``place``: the place, the accepted value, the value found."""
    first = error.errors(include_url=False)[0]
    parts = [*([place] if place else []), *map(str, first["loc"])]
    where = ".".join(part if part.isprintable() and 0 < len(part) < 100 else shown(part) for part in parts) or "it"
    if first["type"] == "json_invalid":
        return first["msg"]
    if first["type"] == "missing":
        return f"{where} is missing"
    if first["type"] == "extra_forbidden":
        return f"{where} is unknown here"
    # "Input should be a valid string", "List should have at least 2 items after validation, not 1"
    needed = first["msg"].partition(" should ")[2].partition(" after validation")[0]
    if first["type"] == "too_long":
        return f"{where} must {needed}, got {len(first['input']):,}"
    wrong = f"must {needed}" if needed else f"isn't accepted ({first['msg']})"
    return f"{where} {wrong}, got {shown(first['input'])}"


def shown(value: object) -> str:
    """Shorten a value for a message, with invisible characters as escapes."""
    try:
        text = repr(value)
    except ValueError:  # Python doesn't print whole numbers of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= 100 else f"{text[:80]}... ({len(text):,} characters)"
