// Shim for NVRTC, which has no host headers: assert, printf, malloc, memcpy and the mathematical functions are built in.
#pragma once
