// Sums by LDS trees, by lane shuffles and by atomics agree with the host; dynamic LDS of several sizes.
#include "check.h"

__global__ void by_tree(const int* in, int* out, int n) {
    extern __shared__ int part[];
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
    part[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0) atomicAdd(out, part[0]);
}

__global__ void by_shuffle(const int* in, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = i < n ? in[i] : 0;
    for (int step = warpSize / 2; step > 0; step /= 2) value += __shfl_down(value, step);
    if (threadIdx.x % warpSize == 0) atomicAdd(out, value);
}

__global__ void histogram(const int* in, unsigned* bins, int n) {
    __shared__ unsigned local[16];
    if (threadIdx.x < 16) local[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[in[i] & 15], 1u);
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

int main() {
    const int n = 50021;
    std::vector<int> in(n);
    int sum = 0;
    unsigned want[16] = {};
    for (int i = 0; i < n; i++) {
        in[i] = int((i * 2654435761u) >> 20);
        sum += in[i];
        want[in[i] & 15]++;
    }
    int *data, *out;
    unsigned* bins;
    HIP(hipMalloc(&data, n * sizeof(int)));
    HIP(hipMalloc(&out, sizeof(int)));
    HIP(hipMalloc(&bins, sizeof want));
    HIP(hipMemcpy(data, in.data(), n * sizeof(int), hipMemcpyHostToDevice));
    for (int block : {64, 256, 1024}) {
        int got = 0;
        HIP(hipMemset(out, 0, sizeof(int)));
        by_tree<<<(n + block - 1) / block, block, block * sizeof(int)>>>(data, out, n);
        HIP(hipMemcpy(&got, out, sizeof(int), hipMemcpyDeviceToHost));
        EXPECT(got == sum);
        HIP(hipMemset(out, 0, sizeof(int)));
        by_shuffle<<<(n + block - 1) / block, block>>>(data, out, n);
        HIP(hipMemcpy(&got, out, sizeof(int), hipMemcpyDeviceToHost));
        EXPECT(got == sum);
    }
    unsigned got[16];
    HIP(hipMemset(bins, 0, sizeof want));
    histogram<<<20, 256>>>(data, bins, n);
    HIP(hipMemcpy(got, bins, sizeof got, hipMemcpyDeviceToHost));
    for (int i = 0; i < 16; i++) EXPECT(got[i] == want[i]);
    std::printf("good\n");
}
