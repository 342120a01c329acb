"""Triage: any crash log to its first real fault, what follows from it, and what to do next.

Readers (one folder) turn lines into signs; `choose` picks the sign that names the first fault; `fold` sorts the rest.
"""

from cudadiag.triage.blocks import blocks
from cudadiag.triage.document import TriageDocument, exit_code
from cudadiag.triage.inputs import STDIN, Incident, incidents
from cudadiag.triage.nologs import Left
from cudadiag.triage.run import Reading, Told, document_of, tell_all, tell_incident
from cudadiag.triage.scan import LogReading, scan
from cudadiag.triage.story import Story, tell
from cudadiag.triage.verdicts import TriageVerdict

__all__ = [
    "STDIN",
    "Incident",
    "Left",
    "LogReading",
    "Reading",
    "Story",
    "Told",
    "TriageDocument",
    "TriageVerdict",
    "blocks",
    "document_of",
    "exit_code",
    "incidents",
    "scan",
    "tell",
    "tell_all",
    "tell_incident",
]
