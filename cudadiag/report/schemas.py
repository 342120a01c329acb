"""JSON Schemas of the documents, made from their classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter

from cudadiag.diagnose.documents import DiagnoseDocument, SanitizeDocument
from cudadiag.gate.outputs.json import GateDocument
from cudadiag.report import documents
from cudadiag.report.answerdoc import BisectDocument
from cudadiag.triage.document import TriageDocument
from cudadiag.triage.index import HistoryDocument

DOCUMENTS: Mapping[str, type[Any]] = {
    "run": documents.RunDocument,
    "sweep": documents.SweepDocument,
    "bisect": BisectDocument,
    "sanitize": SanitizeDocument,
    "diagnose": DiagnoseDocument,
    "gate": GateDocument,
    "doctor": documents.DoctorDocument,
    "cases": documents.CasesDocument,
    "clean": documents.CleanDocument,
    "lookup": documents.LookupDocument,
    "triage": TriageDocument,
    "history": HistoryDocument,
    "error": documents.ErrorDocument,
}


def json_schema(name: str) -> dict[str, Any]:
    """JSON Schema of a document; KeyError for a name that is none."""
    schema = TypeAdapter(DOCUMENTS[name]).json_schema(mode="serialization")
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["$id"] = f"https://cudadiag.readthedocs.io/schema/{name}-{documents.DOCUMENT_VERSION}.json"
    schema["properties"]["document"] = {"const": name}
    schema["properties"]["schema"] = {"const": documents.DOCUMENT_VERSION}
    return schema
