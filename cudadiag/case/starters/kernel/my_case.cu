// One block per row: every thread adds up a part, then the parts are added in shared memory.
extern "C" __global__ void row_sums(const float *x, float *sums, int columns, float scale)
{
    __shared__ float part[128];
    const float *row = x + (long long)blockIdx.x * columns;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        sum += row[i];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        sums[blockIdx.x] = scale * part[0];
}
