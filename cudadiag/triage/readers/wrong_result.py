"""It ran and the numbers are wrong: comparisons of tests and benchmarks."""

from __future__ import annotations

from cudadiag.triage.sign import Role
from cudadiag.triage.wording import WordingReader, wording

WRONG_RESULT = WordingReader(
    "wrong-result",
    (
        wording(
            r"AssertionError: (?:Tensor-likes are not (?:close|equal)|Scalars are not (?:close|equal)"
            r"|\s*Not equal to tolerance|"
            r"Arrays are not (?:almost )?equal|.{0,60}(?:mismatch|not (?:all)?close))",
            Role.WRONG, "differs", "a result differs from its reference",
        ),
        wording(
            r"\bFAIL(?:ED|URE)?\b.{0,40}(?i:max\w*[ _]?(?:abs\w*)?[ _]?(?:diff|err)|rel\w*[ _]?err|mismatch)|"
            r"Mismatched elements: \d+|Not equal to tolerance rtol|Tensor-likes are not (?:close|equal)|"
            r"(?i:\b(?:results?|outputs?|values?|verification|validation"
            r"|correctness)\b.{0,40}\b(?:mismatch(?:es)?|differs?|incorrect|wrong|FAILED)\b)|"
            r"(?i:\bmismatch at (?:index|element|position|\[))|(?i:max(?:imum)? (?:abs(?:olute)? )?(?:diff"
            r"|error)\S* .{0,40}(?:exceeds|> ?tol|FAIL))",
            Role.WRONG, "differs", "a result differs from its reference", weak=True,
        ),
        wording(
            r"(?i)\b(?:loss|logits?|output|grad(?:ient)?s?|probs?|probability tensor)\b.{0,40}(?:\bis "
            r"|contains (?:either )?|[=: ]+)`?(?:nan|inf)\b|"
            r"Detected NaN|NaN (?:or Inf )?(?:found|detected)|found (?:inf|nan) in",
            Role.WRONG, "not-finite", "a result is not a number", weak=True,
        ),
    ),
)  # fmt: skip
