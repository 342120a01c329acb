// Shim for NVRTC, which has no host headers: limits of the integer types, from CCCL.
#pragma once
#include <cuda/std/climits>
