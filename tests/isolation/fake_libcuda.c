/* As much of libcuda as the health check and the canaries ask, with one device in host memory. A test sets `sticky`, or
   `once` for an error that is not. */
#include <stdlib.h>
#include <string.h>
int sticky = 0, once = 0, active = 1, syncs = 0;
static unsigned char *last;
static int said(void) { int now = once; once = 0; return now ? now : sticky; }
int cuGetErrorName(int number, const char **name) { *name = number == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OTHER"; return 0; }
int cuGetErrorString(int number, const char **text) { *text = number == 700 ? "an illegal memory access was encountered" : "other"; return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuCtxGetCurrent(void **context) { *context = active ? (void *)&active : NULL; return 0; }
int cuCtxSynchronize(void) { syncs++; return said(); }
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *on) { *flags = 0; *on = active; return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = (void *)&active; return 0; }
int cuDevicePrimaryCtxRelease_v2(int device) { return 0; }
int cuCtxPushCurrent_v2(void *context) { return 0; }
int cuCtxPopCurrent_v2(void **context) { return 0; }
int cuMemAlloc_v2(unsigned long long *address, size_t bytes) { last = malloc(bytes); *address = (unsigned long long)last; return 0; }
int cuMemsetD8_v2(unsigned long long address, unsigned char value, size_t count) { memset((void *)address, value, count); return 0; }
int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t bytes) { if (sticky) return sticky; memcpy(to, (void *)from, bytes); return 0; }
void stray_store(int offset) { last[offset] = 1; }
