"""The `kernel` target: CUDA C++ kernels run in order over shared buffers. This docstring is the schema of its request.

`ProbeRequest.target` for a kernel target (every expression evaluated, every path absolute, JSON values only)::

    {
      "kind": "kernel",
      "check": true,                      # compare outputs with the reference; false: run only
      "timing": {"launches": 20} | null,  # timed launches after the judged one, by device events; null: none
      "plant": PLANT | null,              # a fault put in after compilation (planted cases only)
      "compiler": "driver",               # NVRTC makes PTX and the driver its machine code; left out: NVRTC makes it
      STEP KEYS                           # one shape ...
    }

or, for `isolation: sequence`, `"steps": [{"shape": {...}, STEP KEYS}, ...]` in place of the step keys: the shapes are
run one after another in one process and one context, each announced with breadcrumbs of its own (`detail.step`, counted
from 0). Modules are compiled once per (source, define, options).

STEP KEYS::

      "shape": {"streams": 1, "q_len": 9},       # for reports; optional without "steps"
      "params": {"streams": 1, "heads": 64},     # axes, `set` and `derive`: offered to references and fill functions
      "buffers": [BUFFER, ...],                  # allocated in this order, freed in reverse (unless "free": false)
      "kernels": [KERNEL, ...],                  # launched in this order on one stream, then one synchronise
      "reference": {"file": "/abs/reference.py", "function": "verify_attn"} | null,
      "tolerance": {"rel": 1e-4, "abs": 1e-5} | {"out": {"rel": .., "abs": ..}, ...} | null

BUFFER::

      {"name": "q", "role": "in" | "out" | "inout" | "scratch", "dtype": "float32", "shape": [1, 9, 64, 576],
       "fill": FILL, "seed": 0,                  # in and inout; scratch is left as allocated, out is poisoned
       "free": true}                             # false: never freed (a leak planted for `isolation: sequence`)

dtypes: float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool. C order.
An empty shape `[]` is one element; a zero extent allocates nothing and passes address 0.

FILL::

      {"kind": "zeros"} {"kind": "ones"} {"kind": "value", "value": 3} {"kind": "arange", "start": 0, "step": 1}
      {"kind": "normal", "mean": 0, "std": 1} {"kind": "uniform", "low": 0, "high": 1}     # high is not included
      {"kind": "randint", "low": 0, "high": 2}                                            # high is not included
      {"kind": "function", "file": "/abs/tree.py", "function": "mask"}
      {"kind": "file", "file": "/abs/data.npz", "name": "x"}                    # .npz with name, .npy without

A string is short for {"kind": string}. Random fills draw from numpy's PCG64 seeded with [seed, crc32(buffer name)].

A fill function, and the reference, is called by keyword with those of these names that its signature takes (all of them
when it takes `**kwargs`): the step's `params`; a fill function also `shape` (tuple), `dtype` (str), `seed` (int); a
reference also every scalar argument that has a `name`, and every in and inout buffer by name as a numpy array (initial
contents; bfloat16 as float32). Buffers win over scalars, scalars over params. Missing required names are an error.
A reference returns an array (where there is exactly one out or inout buffer) or a dict name -> array; outputs that it
does not name are reported as `unchecked`. The folder of the file is put on `sys.path`; numpy is imported before.

`tolerance` {"rel", "abs"}: |got - expected| <= abs + rel * |expected| counts as equal, for floating-point outputs
(null: the defaults of harness/child/compare.py by type); integers are compared exactly unless given one by name.

KERNEL::

      {"source": "/abs/verify_attn.cu", "entry": "verify_attn", "define": {"SCRATCH_LEN": 4096}, "options": ["-O3"],
       "grid": [64, 1, 1], "block": [128, 1, 1], "shared": 0, "cluster": [2, 1, 1] | null,
       "args": [ARG, ...]}

ARG: "q" (a buffer's name: its address) | {"scalar": 256, "dtype": "int32", "name": "prefix"} ("name" optional).
`entry` is the name of an `extern "C"` function, or a plain function's name (then looked up among the mangled names).
`options` go to NVRTC after ours (`-lineinfo`, the device's architecture, `-I` of the source's folder and of the
toolkit's headers). `shared` is dynamic shared memory in bytes; over 48 KB is opted in.

PLANT::

      {"kind": "illegal-instruction", "entry": "tree_flat", "source": "/abs/tree.cu",
       "marker": "PLANT HERE" | "line": 41 | "pc": 96}

Machine code is overwritten after compilation, as a miscompile would leave it: at byte `pc` of the kernel, or of source
line `line`, or of the one line that holds the text `marker`. "source" may be left out when the target has one source.
On a GPU it is every store, call, return, barrier and atomic operation of the line: its address arithmetic is moved
ahead of the branches that guard it, what others see of it is not. A guarded line that was compiled without a branch is
refused. On the emulated device it is the line's first PTX instruction. What the driver compiled holds none.

What the worker reports (`ProbeFacts.result`; keys are there only when known)::

    {"finished": true, "synchronised": true,
     "error": {"step": "synchronise", "type": "CudaError", "text": "...", "cuda_name": "CUDA_ERROR_ILLEGAL_ADDRESS",
               "number": 700, "call": "cuCtxSynchronize", "traceback": "...", "log": "NVRTC's output"},
     "buffers": [{"name": "q", "role": "in", "dtype": "float32", "shape": [..], "address": 140.., "size": 20736}, ...],
     "kernels": [{"entry": "verify_attn", "registers": 40, "shared_static": 0, "local_bytes": 0, "max_threads": 1024}],
     "comparison": {"outputs": {"out": {"elements": n, "differing": n, "max_abs": x, "max_rel": x,
                    "first": {"index": [0, 1], "got": x, "expected": x} | null, "nonfinite": n, "poison_left": n,
                    "rel": 1e-4, "abs": 1e-5}}, "unchecked": {"path": {"elements": n, "poison_left": n}},
                    "changed_inputs": ["kv"]},
     "us_per_call": 12.3, "launch_us": [12.2, 12.4], "reference_s": 0.01, "compile_s": 0.03,
     "memory": {"total": n, "free_before": n, "free_after": n},
     "steps": [{the keys above for each step of a sequence}]}

In a sequence the top level holds the keys of the last step begun. `poison_left` counts elements that still hold the
bits written before the run, where the reference expects others: never written (under initcheck nothing is written
before the run, and the key is missing). Numbers that JSON lacks are the texts "nan", "inf", "-inf". A CUDA error has
the device's `type` "CudaError", a refused compilation "CompileError" (with `log`), what the device cannot do
"NotSupported". Nothing here says whether the probe passed.
"""

from __future__ import annotations

from harness.records import ProbeRequest
from harness.targets.command import PYTHON_ENVIRONMENT
from harness.targets.interface import ResultChannel, TargetLaunch, worker_launch


def launch(request: ProbeRequest, channel: ResultChannel) -> TargetLaunch:
    return worker_launch(request, channel, PYTHON_ENVIRONMENT)
