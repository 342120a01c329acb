"""Refusals that look like failures: the server or program is well, what was asked of it is not."""

from __future__ import annotations

from cudadiag.triage.sign import Role
from cudadiag.triage.wording import WordingReader, wording

_N = Role.NOT_A_CRASH
NOT_A_CRASH = WordingReader(
    "not-a-crash",
    (
        wording(
            r"(?i)maximum context length|exceeds? (?:the )?(?:model'?s? )?(?:max(?:imum)? (?:model |context "
            r"|sequence |prompt )?(?:len(?:gth)?|tokens)|context (?:length|window|size))|"
            r"longer than the (?:model'?s )?(?:maximum|max)[\w ]{0,20}(?:context|model|sequence|input"
            r"|prompt)? ?length|context_length_exceeded|"
            r"(?:prompt|input|request|requested token count)[\w ()]{0,60}(?:is too long|too long for|exceeds?)"
            r"|exceed_context_size|"
            r"is longer than the maximum model length|the request exceeds the available context size",
            _N, "context-too-long", "the prompt (with the tokens to generate) is longer than the model's context",
        ),
        wording(
            r"(?i)address already in use|\bport \d+ is (?:already )?(?:in use|occupied|not available)|EADDRINUSE|"
            r"Only one usage of each socket address|bind: .{0,30}in use|error while attempting to bind on address",
            _N, "port-in-use", "the port is taken: another server (perhaps an old one) runs there",
        ),
        wording(
            r"FileNotFoundError: |does not appear to have a file named|"
            r"is not a (?:local folder|valid model identifier)|"
            r"Repository Not Found|RepositoryNotFoundError|Entry ?NotFoundError|Incorrect path_or_model_id|"
            r"Can't load (?:the )?(?:tokenizer|model|config\w*|image processor) for|Unrecognized model in|"
            r"failed to open (?:GGUF )?file|failed to load model from|"
            r"Error\b.*(?:No such file or directory|path .{0,120}(?:does not exist|doesn't exist))",
            _N, "file-missing", "a file or model is not where it was looked for",
        ),
        wording(
            r"No such file or directory|"
            r"(?:model|file|path|checkpoint|directory|config)\b.{0,120}\b(?:does not exist|not found|doesn't exist)",
            _N, "file-missing", "a file is not where it was looked for", weak=True,
        ),
        wording(
            r"(?i)\b401\b.{0,40}(?:unauthori[sz]ed|client error)|GatedRepoError|403 Forbidden|Invalid API key"
            r"|Access to model .{0,60} is restricted",
            _N, "not-allowed", "access was refused: a token is missing or has no rights",
        ),
        wording(
            r"(?i)unrecogni[sz]ed (?:arguments?|options?)\b"
            r"|error: argument |error: the following arguments are required"
            r"|invalid choice: |"
            r"No such option|Unknown option|usage: \S+ \[-h\].*error",
            _N, "wrong-usage", "the command line is wrong",
        ),
        wording(
            r"\bKeyboardInterrupt\b|Received (?:SIGINT|SIGTERM),? (?:shutting|exiting|stopping|scheduling)"
            r"|^Terminated\s*$|"
            r"CANCELLED AT \S+ (?:\*\*\*)?(?!.*TIME)|Received signal 15|Shutting down(?: gracefully)?: received",
            _N, "stopped", "somebody stopped it", weak=True,
        ),
        wording(
            r"(?i)\b429\b.{0,40}too many requests|rate limit exceeded"
            r"|RateLimitError", _N, "rate-limit", "too many requests were sent",
        ),
        wording(
            r"HTTP/\d(?:\.\d)?\"? (?:400|404|405|413|422)\b|\b(?:HTTP|status(?:_code)?"
            r"|Error code)[ :=]{1,3}(?:400|404|413|422)\b|"
            r"\b400 (?:Client Error|Bad Request)|HTTPError.{0,20}\b400\b|BadRequestError",
            _N, "bad-request", "the server refused the request (HTTP 4xx): the request is wrong, the server is well",
            weak=True,
        ),
    ),
)  # fmt: skip
