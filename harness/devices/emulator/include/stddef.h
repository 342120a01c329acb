// Shim for NVRTC, which has no host headers: size_t and ptrdiff_t are built in.
#pragma once
#ifndef NULL
#define NULL 0
#endif
#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
