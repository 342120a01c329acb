// One block per row: copies the row to scratch memory, then adds it up. SCRATCH floats per row: too few for long rows.
extern "C" __global__ void starter(const float* x, float* sums, float* scratch, int columns) {
    float* mine = scratch + blockIdx.x * SCRATCH;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) {
        mine[i] = x[blockIdx.x * columns + i];  // the bug: nobody checked columns <= SCRATCH
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        float sum = 0.0f;
        for (int i = 0; i < columns; ++i) sum += mine[i];
        sums[blockIdx.x] = sum;
    }
}
