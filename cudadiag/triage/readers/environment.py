"""The machine, the driver or the installation is not what the program needs. No shape and no kernel is to blame."""

from __future__ import annotations

from cudadiag.triage.sign import Role
from cudadiag.triage.wording import WordingReader, wording

_E = Role.ENVIRONMENT
ENVIRONMENT = WordingReader(
    "environment",
    (
        wording(
            r"(?i)driver/library version mismatch", _E, "driver-mismatch",
            "the loaded kernel module and the driver's library are of different versions: reload or restart",
        ),
        wording(
            r"(?i)NVIDIA-SMI has failed because it couldn't communicate|No devices were found$"
            r"|couldn't communicate with the NVIDIA driver|"
            r"Found no NVIDIA driver on your system|libcuda\.so(?:\.1)?: cannot open shared object|"
            r"Could not (?:load|find) (?:dynamic )?library '?libcuda|CUDA driver library (?:is|was) not found|"
            r"could not select device driver .{0,10}\"\" with capabilities: \[\[gpu"
            r"|nvidia-container-cli: initialization error|"
            r"Failed to initialize NVML",
            _E, "no-driver", "no working NVIDIA driver here",
        ),
        wording(
            r"Torch not compiled with CUDA enabled|AssertionError: Torch not compiled with CUDA|"
            r"Attempting to deserialize object on a CUDA device but torch\.cuda\.is_available\(\) is False|"
            r"No CUDA (?:GPUs are|runtime is) (?:available|found)|CUDA is not available|"
            r"An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not installed|"
            r"no CUDA-capable device is detected|"
            r"Unknown backend:? '?(?:gpu|cuda)|Unable to initialize backend '(?:gpu|cuda)",
            _E, "no-device",
            "no GPU can be used: none there, none visible (CUDA_VISIBLE_DEVICES), or a build without CUDA",
        ),
        wording(
            r"(?i)is not compatible with the current PyTorch installation|"
            r"no kernel image is available|sm_\d+ is not (?:supported|defined)|Unsupported gpu architecture|"
            r"The (?:current )?PyTorch install supports CUDA capabilities|requires (?:device|compute) capability|"
            r"(?:only|not) supported (?:on|for) (?:GPUs? with )?(?:compute capability|sm_?\d+|Ampere|Hopper|Blackwell)|"
            r"ptxas fatal\s*: Value 'sm_\d+\w*' is not defined for option 'gpu-name'"
            r"|FlashAttention only supports Ampere",
            _E, "wrong-architecture", "the binary holds no code for this GPU's architecture",
        ),
        wording(
            r"(?:ImportError|OSError): (?:.*?)(?P<file>lib\w[\w.+-]*\.so[.\d]*): (?:cannot open shared object"
            r"|undefined symbol|version)|"
            r"undefined symbol: _Z\w+|version `(?:GLIBC|GLIBCXX|CXXABI)_[\d.]+' not found|"
            r"error while loading shared libraries: (?P<name>lib\S+): cannot open|DLL load failed while importing",
            _E, "library-missing", "a library is missing or of another version",
        ),
        wording(
            r"(?:ModuleNotFoundError|ImportError): (?:No module named '?(?P<name>[\w.]+))?",
            _E, "module-missing", "a Python module is missing or of another version",
        ),
        wording(
            r"(?i)nvcc(?: was)? not found|CUDA_HOME (?:environment variable )?is not set|nvcc: (?:command )?not found|"
            r"Cannot find (?:CUDA|cuda) (?:toolkit|installation)"
            r"|detected CUDA version .{0,40}mismatches the version that was used",
            _E, "toolkit-missing", "the CUDA toolkit is missing or of another version",
        ),
        wording(
            r"driver on your system is too old|CUDA driver version is insufficient|requires a newer (?:NVIDIA )?driver",
            _E, "driver-too-old", "the driver is older than the CUDA libraries need",
        ),
        wording(
            r"Insufficient nvidia\.com/gpu|ImagePullBackOff|ErrImagePull|UnexpectedAdmissionError", _E, "not-scheduled",
            "the cluster did not start it",
        ),
        wording(
            r"Duplicate GPU detected|Bootstrap : no socket interface found|No socket interface found", _E, "nccl-setup",
            "ranks are not placed or connected as NCCL needs it",
        ),
        wording(
            r"ninja: build stopped|Error building extension|errors? detected in the compilation of|nvcc fatal|"
            r"PTXASError|ptxas (?:fatal|error)|error: command '.{0,200}(?:nvcc|g\+\+|cicc|ninja)' failed",
            _E, "build-failed", "the program or a kernel could not be compiled: nothing ran",
        ),
        wording(
            r"[Cc]onnect to \S+ failed ?: ?(?:No route to host|Connection timed out|Network is unreachable)|"
            r"ncclSystemError|unhandled system error",
            _E, "network", "NCCL could not use the network or a system call failed", weak=True,
        ),
        wording(
            r"Cannot re-initialize CUDA in forked subprocess", _E, "fork-after-cuda",
            "the process was forked after CUDA had been initialised: use the spawn start method",
        ),
        wording(
            r"(?i)fabric manager|fabricmanager|nv-fabricmanager.{0,60}(?:not running|fail|error)", _E, "fabric-manager",
            "the fabric manager is not running or of another version", weak=True,
        ),
        wording(
            r"(?i)permission denied.{0,60}(?:/dev/nvidia|docker\.sock)"
            r"|/dev/nvidia\S*.{0,40}permission denied", _E, "permission",
            "no permission for the device",
        ),
        wording(
            r"(?:command not found|: not found)$|exec(?:ve|format)? .{0,60}(?:no such file|Exec format error)|"
            r"Exec format error", _E, "command-missing", "a program could not be started", weak=True,
        ),
    ),
)  # fmt: skip
