// Shim for NVRTC, which has no host headers: limits of the floating-point types, from CCCL.
#pragma once
#include <cuda/std/cfloat>
