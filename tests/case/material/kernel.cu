#include "shared.h"
#include "missing.h"
#include <cstdint>
extern "C" __global__ void scale(const float *x, float *y, int n)
{
    if (n < 16)
        y[0] = FACTOR * x[0];  // PLANT HERE
}
extern "C" __global__ void twice(float *y) {}  // scale
