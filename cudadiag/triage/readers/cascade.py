"""What follows from a process that is gone, as its clients, peers and supervisors tell it. Never a cause."""

from __future__ import annotations

from cudadiag.triage.sign import Role
from cudadiag.triage.wording import WordingReader, wording

_C = Role.CASCADE
CASCADE = WordingReader(
    "cascade",
    (
        wording(
            r"EngineDeadError|Engine ?(?:Core|core|loop|process)?[\w ]{0,30}(?:is (?:already )?dead|died"
            r"|encountered (?:an issue|a fatal error)|has died|failed to start|initialization failed)|"
            r"AsyncEngineDeadError|MQEngineDeadError|engine is already dead|Background loop (?:has"
            r"|is) (?:errored|stopped)|Engine background task failed",
            _C, "engine-dead", "the server's engine process is gone",
        ),
        wording(
            r"Received sigquit from a child process?|Subprocess .{0,60}(?:died|exited|crashed)"
            r"|child process.{0,40}(?:died|failed|exited)|"
            r"Worker(?:Proc)?[\w ]{0,40}(?:died|is dead|exited unexpectedly|initialization failed"
            r"|hit an exception|failed with error)|"
            r"(?:worker|actor) (?:process )?(?:died|is dead|was killed|crashed)|ActorDiedError|RayActorError"
            r"|WorkerCrashedError|"
            r"A worker (?:died|process managed)|llama runner (?:process )?(?:has )?terminated"
            r"|llama runner process no longer running|"
            r"BrokenProcessPool|terminated unexpectedly|(?:Scheduler|TpModelWorker\w*|Detokenizer\w*) hit an exception",
            _C, "worker-dead", "a worker process is gone; its own last words say why",
        ),
        wording(
            r"Root Cause \(first observed failure\)|ChildFailedError|torch\.distributed\.elastic"
            r"|Sending process \d+ closing signal|"
            r"failed \(exitcode: -?\d+\) local_rank|exitcode\s*: -?\d+ \(pid"
            r"|Signal \d+ \(SIG\w+\) received by PID|error_file: |"
            r"local_rank\s*:|torchrun.{0,40}fail|<NO_OTHER_FAILURES>|Signals\.SIG\w+ death signal",
            _C, "torchrun-summary", "torchrun's summary: the first process it saw die, which is not the cause",
        ),
        wording(
            r"(?i)connection ?refused|ECONNREFUSED|failed to establish a new connection|max retries exceeded"
            r"|cannot connect to host|"
            r"all connection attempts failed|APIConnectionError|upstream connect error",
            _C, "connection-refused", "nobody listens there any more",
        ),
        wording(
            r"(?i)connection ?reset|ECONNRESET|reset by peer|server ?disconnected|remote end closed|RemoteDisconnected|"
            r"connection (?:was )?(?:closed|lost|aborted)|socket hang up|broken ?pipe|EPIPE"
            r"|incomplete (?:chunked )?read|premature end|"
            r"ClientPayloadError|EOFError: Ran out of input|unexpected EOF|IncompleteRead"
            r"|response payload is not completed",
            _C, "connection-lost", "the other side of a connection is gone",
        ),
        wording(
            r"HTTP/\d(?:\.\d)?\"? 50[0234]\b|\b(?:HTTP|status(?:_code)?|Error code)[ :=]{1,3}50[0234]\b"
            r"|50[0234] (?:Server Error|Internal Server Error|Bad Gateway|Service Unavailable|Gateway Time)|"
            r"InternalServerError",
            _C, "http-5xx", "a request failed on the server's side",
        ),
        wording(
            r"TCPStore|recvValue failed|sendBytes failed|store->get\(\)|Failed to recv, got 0 bytes"
            r"|Socket Timeout|c10d.{0,40}store",
            _C, "tcp-store", "a peer lost the rendezvous store",
        ),
        wording(
            r"NCCL communicator (?:was|encountered error)|ncclRemoteError|ncclCommAbort"
            r"|Watchdog.{0,60}terminated|ncclInternalError|"
            r"Net : Call to recv from|socketProgress: Connection closed|remote process exited"
            r"|NET/IB : Got completion .{0,80}with (?:error|status)|"
            r"DistBackendError|heartbeat|Heartbeat|Process group watchdog thread terminated"
            r"|NCCL watchdog thread (?:got|terminated)",
            _C, "peer-lost", "a peer of a collective is gone",
        ),
        wording(
            r"(?i)(?:exit ?code|exitcode|exit status|return ?code|rc)[ :=]{1,3}-15\b|SIGTERM|signal 15\b"
            r"|\(-15\)", _C, "terminated",
            "it was told to end, because another had ended",
        ),
        wording(
            r"(?i)back-?off restarting failed container|CrashLoopBackOff|(?:readiness|liveness|startup) probe failed|"
            r"Scheduled restart job|pod .{0,60}(?:unhealthy|not ready)",
            _C, "restarted", "the supervisor saw the process end",
        ),
        wording(
            r"(?i)^(?!.*(?:throughput|running|#queue)).*(?:(?<![\d.])0(?:\.0+)? ?(?:tok(?:en)?s?/s|tokens per second)"
            r"|(?<![\d.])0 (?:completion |output |generated )?tokens\b"
            r"|(?:completion|output|generated)_?tokens[\"']?[=:] ?0\b"
            r"|empty (?:response|completion)|zero tokens|no tokens (?:were )?generated)",
            _C, "zero-tokens", "requests that gave no tokens",
        ),
        wording(
            r"(?i)asyncio\.exceptions\.CancelledError|CancelledError|request .{0,60}(?:was )?abort(?:ed)?"
            r"|health ?check failed|"
            r"server (?:is )?not (?:ready|responding|reachable)|failed to (?:get|receive) (?:a )?response"
            r"|ReadTimeout|timed? ?out waiting for (?:the )?server|"
            r"Timeout ?Error|asyncio\.TimeoutError|deadline exceeded|(?:request|read|connection) timed out",
            _C, "no-response", "no answer came any more",
        ),
    ),
)  # fmt: skip
