"""docs/schema as checks: what stands there must be so, and nothing may be that does not."""

from __future__ import annotations

import json
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from support.client import REPOSITORY

DIRECTORY = REPOSITORY / "docs/schema"


def load() -> dict[str, Any]:
    """The documents of the directory by their file names."""
    return {path.name: json.loads(path.read_text()) for path in sorted(DIRECTORY.glob("*.json"))}


def _closed(schema: Any, *, partial: bool = False) -> Any:
    """``schema`` with no room for properties that it does not name.

    Readers must bear new fields; the documentation must not lack any. ``partial``: others add.
    """
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {
        key: [_closed(item, partial=True) for item in value]
        if key == "allOf"
        else _closed(value, partial=key in {"if", "then", "else"})
        for key, value in schema.items()
        if key != "properties"
    }
    if "properties" in schema:
        closed["properties"] = {
            name: _closed(value, partial=partial and "type" not in value)
            for name, value in schema["properties"].items()
        }
    if not partial and ("properties" in schema or "$ref" in schema):
        closed["unevaluatedProperties"] = False
    return closed


def _validators() -> dict[str, Draft202012Validator]:
    documents = load()
    # A document that others refer to stays open: whoever refers closes it.
    parts = {name: _closed(document, partial=True) for name, document in documents.items()}
    registry: Registry[Any] = Registry().with_resources(
        (name, Resource.from_contents(part, default_specification=DRAFT202012))
        for name, part in parts.items()
    )
    return {
        name: Draft202012Validator(_closed(document), registry=registry)
        for name, document in documents.items()
    }


VALIDATORS = _validators()


def check(name: str, document: Any) -> None:
    """AssertionError that tells all faults of ``document`` as one of ``docs/schema/NAME.json``."""
    faults = [
        f"{error.json_path}: {error.message}"
        for error in VALIDATORS[f"{name}.json"].iter_errors(document)
    ]
    assert not faults, "\n".join([*faults, json.dumps(document, indent=2)])
