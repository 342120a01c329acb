// Latency of verify_attn over a sweep of shapes, all in one process: the kind of benchmark whose crash names the
// wrong call.
//
//   bench_kernels                                   the whole sweep
//   bench_kernels --streams 4 --q 9 --prefix 4096   one shape
//
// Built with -DSCRATCH_LEN=4096 it carries verify_attn's planted defect and dies somewhere in its table with exit
// status 2. Three things make the death hard to read, and all are common: errors are noticed at a synchronise
// (`@LINE` is that line), standard output is buffered in blocks when it is not a terminal, and results of the shapes
// before were wrong already. Nothing here compares results.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

#ifndef LATENT
#define LATENT 512
#define ROPE 64
#endif
#include "verify_attn.cu"

#define CK(call)                                                                      \
  do {                                                                                \
    cudaError_t error_ = (call);                                                      \
    if (error_ != cudaSuccess) {                                                      \
      fprintf(stderr, "cuda %s @%d\n", cudaGetErrorString(error_), __LINE__);         \
      exit(2);                                                                        \
    }                                                                                 \
  } while (0)

constexpr int kHeads = 64;

struct Shape {
  int streams, q_len, prefix;
};

template <typename Launch>
float time_us(Launch launch, int warmup, int launches) {
  cudaEvent_t start, stop;
  CK(cudaEventCreate(&start));
  CK(cudaEventCreate(&stop));
  for (int i = 0; i < warmup; ++i) launch();
  CK(cudaDeviceSynchronize());
  CK(cudaEventRecord(start));
  for (int i = 0; i < launches; ++i) launch();
  CK(cudaEventRecord(stop));
  CK(cudaEventSynchronize(stop));
  float ms = 0;
  CK(cudaEventElapsedTime(&ms, start, stop));
  CK(cudaEventDestroy(start));
  CK(cudaEventDestroy(stop));
  return 1000 * ms / launches;
}

template <typename T>
T* on_device(const std::vector<T>& host) {
  T* device = nullptr;
  CK(cudaMalloc(&device, host.size() * sizeof(T)));
  CK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
  return device;
}

std::vector<float> noise(size_t n) {  // uniform in [-1, 1): only the time matters
  std::vector<float> values(n);
  unsigned state = 12345;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<int>(state) * (1.0f / 2147483648.0f);
  }
  return values;
}

float bench(Shape shape) {
  const int length = shape.prefix + shape.q_len;
  const size_t rows = static_cast<size_t>(shape.streams) * shape.q_len;
  std::vector<unsigned char> causal(rows * shape.q_len);  // a chain is a tree too
  for (size_t i = 0; i < causal.size(); ++i) causal[i] = i % shape.q_len <= i / shape.q_len % shape.q_len;
#ifdef SCRATCH_LEN
  const size_t pitch = SCRATCH_LEN;
#else
  const size_t pitch = length;
#endif
  float* q = on_device(noise(rows * kHeads * (LATENT + ROPE)));
  float* kv = on_device(noise(static_cast<size_t>(shape.streams) * length * (LATENT + ROPE)));
  unsigned char* vis = on_device(causal);
  float *out, *scores;
  CK(cudaMalloc(&out, rows * kHeads * LATENT * sizeof(float)));
  CK(cudaMalloc(&scores, rows * kHeads * pitch * sizeof(float)));

  const dim3 grid(kHeads, shape.streams);
  const float us =
      time_us([&] { verify_attn<<<grid, 128>>>(q, kv, vis, out, scores, shape.q_len, shape.prefix); }, 3, 10);
  CK(cudaFree(scores));
  CK(cudaFree(out));
  CK(cudaFree(vis));
  CK(cudaFree(kv));
  CK(cudaFree(q));
  return us;
}

std::vector<Shape> shapes(int argc, char** argv) {
  Shape one = {1, 9, 256};
  for (int i = 1; i < argc; ++i) {
    int* value = !strcmp(argv[i], "--streams") ? &one.streams
                 : !strcmp(argv[i], "--q")     ? &one.q_len
                 : !strcmp(argv[i], "--prefix") ? &one.prefix
                                                : nullptr;
    if (!value || i + 1 == argc || (*value = atoi(argv[++i])) <= 0) {
      fprintf(stderr, "usage: bench_kernels [--streams N] [--q N] [--prefix N]\n");
      exit(64);
    }
  }
  if (argc > 1) return {one};
  std::vector<Shape> all;
  for (int streams : {1, 4, 8})
    for (int q_len : {9, 17, 33})
      for (int prefix : {256, 1024, 4096}) all.push_back({streams, q_len, prefix});
  return all;
}

int main(int argc, char** argv) {
  const std::vector<Shape> sweep = shapes(argc, argv);
  cudaDeviceProp device;
  CK(cudaGetDeviceProperties(&device, 0));
  printf("GPU: %s  sm_%d%d\n\n", device.name, device.major, device.minor);
  printf("== verify_attn (MLA absorb, H=%d Dl=%d Dr=%d) ==\n", kHeads, LATENT, ROPE);
  printf("streams  q_len  prefix      us/call\n");
  for (const Shape& shape : sweep) {
    printf("%6d  %5d  %6d  %11.1f\n", shape.streams, shape.q_len, shape.prefix, bench(shape));
  }
  return 0;
}
