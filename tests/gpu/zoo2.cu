// More planted CUDA faults, for what zoo.cu does not show: threads still alive at the fault, inlined functions, templates,
// clusters, the device heap, warp-level hazards, stream-ordered memory, damaged machine code. One per name on the command line.
// Built with: nvcc -lineinfo -arch=sm_90 zoo2.cu
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>
#include <cuda_runtime.h>

#define CK(x) do { cudaError_t e_ = (x); if (e_ != cudaSuccess) { \
  fprintf(stderr, "CUDA error at %s:%d code=%d(%s) \"%s\"\n", __FILE__, __LINE__, (int)e_, cudaGetErrorName(e_), #x); exit(2); } } while (0)

__global__ void load_far(const float* p, size_t off, float* out) {
  out[threadIdx.x] = p[off + threadIdx.x];
}

__device__ __forceinline__ float row_value(const float* p, size_t row, size_t cols) {
  return p[row * cols + threadIdx.x];
}

__device__ __forceinline__ float two_rows(const float* p, size_t row, size_t cols) {
  return row_value(p, 0, cols)
       + row_value(p, row, cols);
}

__global__ void inlined(const float* p, size_t row, size_t cols, float* out) {
  out[blockIdx.x * blockDim.x + threadIdx.x] = two_rows(p, row, cols);
}

template <int N, typename T>
__global__ void scale_rows(T* p, size_t off) {
  for (int i = 0; i < N; ++i)
    p[off + i * blockDim.x + threadIdx.x] *= T(2);
  __syncthreads();
  p[threadIdx.x] += T(1);
}

__global__ void local_far(int* out, int at) {
  volatile int mine[8];
  for (int i = 0; i < 8; ++i) mine[i] = i;
  mine[at + threadIdx.x] = 7;
  out[threadIdx.x] = mine[threadIdx.x & 7];
}

__global__ void wrong_space(float* out) {
  __shared__ float s[32];
  s[threadIdx.x] = 1.f;
  __syncthreads();
  float v;
  asm volatile("ld.global.f32 %0, [%1];" : "=f"(v) : "l"((unsigned long long)(void*)s));
  out[threadIdx.x] = v;
}

__global__ void __cluster_dims__(2, 1, 1) cluster_range(float* out, unsigned rank) {
  __shared__ float s[32];
  s[threadIdx.x] = 1.f;
  unsigned local = (unsigned)__cvta_generic_to_shared(&s[threadIdx.x]), remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(local), "r"(rank));
  float v;
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(remote));
  out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}

__global__ void __cluster_dims__(2, 1, 1) cluster_gone(float* out, int spin) {
  __shared__ float s[32];
  s[threadIdx.x] = 1.f;
  if (blockIdx.x == 1) return;
  for (int i = 0; i < spin; ++i) __nanosleep(1000);
  unsigned local = (unsigned)__cvta_generic_to_shared(&s[threadIdx.x]), remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(local), "r"(1u));
  float v;
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(v) : "r"(remote));
  out[threadIdx.x] = v;
}

__global__ void free_twice(int** out) {
  int* q = (int*)malloc(64);
  q[0] = threadIdx.x;
  free(q);
  free(q);
  *out = q;
}

__global__ void heap_leak(int** out) {
  int* q = (int*)malloc(64);
  q[0] = 1;
  *out = q;
}

__global__ void warp_hazard(int* out) {
  __shared__ int s[64];
  s[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = s[(threadIdx.x + 1) & 31];
}

__global__ void bad_syncwarp(int* out) {
  if (threadIdx.x < 16) __syncwarp(0xffff0000u);
  out[threadIdx.x] = 1;
}

__global__ void block_divergence(int* out) {
  if (threadIdx.x < 32) __syncthreads();
  else { __syncthreads(); __syncthreads(); }
  out[threadIdx.x] = 1;
}

__global__ void shared_uninit(float* out) {
  __shared__ float s[64];
  if (threadIdx.x < 16) s[threadIdx.x] = 1.f;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}

__global__ void fill_async(float* p, int n, int spin) {
  for (int i = 0; i < spin; ++i) __nanosleep(1000);
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = 1.f;
}

__global__ void many_blocks(float* p, int rows, int cols) {
  int r = blockIdx.x * blockDim.x + threadIdx.x;
  int at = r * cols;
  if (r < rows) { float v = p[at]; __syncthreads(); p[at] = v + 1.f; }
}

static void run_image(const char* path, const char* entry) {
  FILE* f = fopen(path, "rb");
  if (!f) { fprintf(stderr, "cannot open %s\n", path); exit(64); }
  std::vector<char> image(1 << 20);
  image.resize(fread(image.data(), 1, image.size(), f));
  fclose(f);
  cudaLibrary_t library; cudaKernel_t kernel; float* out;
  CK(cudaLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CK(cudaLibraryGetKernel(&kernel, library, entry));
  CK(cudaMalloc(&out, 4096));
  CK(cudaMemset(out, 0, 4096));
  void* args[] = {&out};
  CK(cudaLaunchKernel((const void*)kernel, dim3(2), dim3(64), args, 0, nullptr));
  CK(cudaDeviceSynchronize());
}

int main(int argc, char** argv) {
  std::string f = argc > 1 ? argv[1] : "ok";
  setvbuf(stdout, nullptr, _IOLBF, 1 << 16);
  float *a = nullptr, *b = nullptr; const int n = 1024;
  CK(cudaMalloc(&a, n * sizeof(float))); CK(cudaMalloc(&b, 4 * n * sizeof(float)));
  CK(cudaMemset(a, 0, n * sizeof(float))); CK(cudaMemset(b, 0, 4 * n * sizeof(float)));
  printf("fault=%s\n", f.c_str());
  if (f == "ok") { scale_rows<4, float><<<1, 64>>>(a, 0); }
  else if (f == "load_far") { load_far<<<2, 64>>>(a, (size_t)1 << 33, b); }
  else if (f == "inlined") { inlined<<<2, 64>>>(a, (size_t)1 << 28, 64, b); }
  else if (f == "template") { scale_rows<4, float><<<2, 64>>>(a, (size_t)1 << 33); }
  else if (f == "template_near") { scale_rows<4, float><<<1, 64>>>(a, 1024 - 64 * 3 + 16); }
  else if (f == "local_far") { local_far<<<1, 32>>>((int*)b, 1 << 22); }
  else if (f == "wrong_space") { wrong_space<<<1, 32>>>(b); }
  else if (f == "cluster_range") { cluster_range<<<2, 32>>>(b, 7); }
  else if (f == "cluster_gone") { cluster_gone<<<2, 32>>>(b, 2000); }
  else if (f == "free_twice") { int** o; CK(cudaMalloc(&o, 8)); free_twice<<<1, 1>>>(o); }
  else if (f == "heap_leak") { int** o; CK(cudaMalloc(&o, 8)); heap_leak<<<1, 1>>>(o); }
  else if (f == "warp_hazard") { warp_hazard<<<1, 32>>>((int*)b); }
  else if (f == "bad_syncwarp") { bad_syncwarp<<<1, 32>>>((int*)b); }
  else if (f == "block_divergence") { block_divergence<<<1, 64>>>((int*)b); }
  else if (f == "shared_uninit") { shared_uninit<<<1, 64>>>(b); }
  else if (f == "unused") { float* c; CK(cudaMalloc(&c, 8192)); fill_async<<<1, 64>>>(c, 64, 0); }
  else if (f == "async_use_after_free") {
    cudaStream_t s, t; CK(cudaStreamCreate(&s)); CK(cudaStreamCreate(&t)); float* c;
    CK(cudaMallocAsync((void**)&c, 4096, s)); CK(cudaFreeAsync(c, s)); fill_async<<<4, 256, 0, s>>>(c, n, 0);
  }
  else if (f == "async_race") {
    cudaStream_t s, t; CK(cudaStreamCreate(&s)); CK(cudaStreamCreate(&t)); float* c;
    CK(cudaMallocAsync((void**)&c, 4096, s)); fill_async<<<4, 256, 0, t>>>(c, n, 1000); CK(cudaFreeAsync(c, s));
  }
  else if (f == "many_blocks") { many_blocks<<<160, 256>>>(a, 40000, 60000); }
  else if (f == "ends_early") { load_far<<<2, 64>>>(a, (size_t)1 << 33, b); return 0; }
  else if (f == "no_cuda_work") { return 0; }
  else if (f == "image" && argc > 3) { run_image(argv[2], argv[3]); }
  else { fprintf(stderr, "unknown fault %s\n", f.c_str()); return 64; }
  CK(cudaGetLastError());
  CK(cudaDeviceSynchronize());
  printf("done\n");
  CK(cudaFree(a)); CK(cudaFree(b));
  return 0;
}
