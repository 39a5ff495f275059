// Managed and zero-copy host memory are read and written by both sides; device symbols are set and read.
#include "check.h"

__device__ int counter = 5;
__constant__ float table[16];

__global__ void twice(int* values, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) values[i] *= 2;
}

__global__ void look(float* out) {
    out[threadIdx.x] = table[threadIdx.x];
    atomicAdd(&counter, 1);
}

int main() {
    const int n = 10000;
    int* managed;
    HIP(hipMallocManaged(reinterpret_cast<void**>(&managed), n * sizeof(int)));
    for (int i = 0; i < n; i++) managed[i] = i;
    twice<<<(n + 127) / 128, 128>>>(managed, n);
    HIP(hipDeviceSynchronize());
    for (int i = 0; i < n; i++) EXPECT(managed[i] == 2 * i);

    int *mapped, *seen;
    HIP(hipHostMalloc(&mapped, n * sizeof(int), hipHostMallocMapped));
    HIP(hipHostGetDevicePointer(reinterpret_cast<void**>(&seen), mapped, 0));
    for (int i = 0; i < n; i++) mapped[i] = -i;
    twice<<<(n + 127) / 128, 128>>>(seen, n);
    HIP(hipDeviceSynchronize());
    for (int i = 0; i < n; i++) EXPECT(mapped[i] == -2 * i);

    std::vector<int> plain(n, 3);
    HIP(hipHostRegister(plain.data(), n * sizeof(int), hipHostRegisterMapped));
    HIP(hipHostGetDevicePointer(reinterpret_cast<void**>(&seen), plain.data(), 0));
    twice<<<(n + 127) / 128, 128>>>(seen, n);
    HIP(hipDeviceSynchronize());
    for (int i = 0; i < n; i++) EXPECT(plain[i] == 6);
    HIP(hipHostUnregister(plain.data()));

    float want[16], got[16], *out;
    for (int i = 0; i < 16; i++) want[i] = 1.5f * float(i);
    HIP(hipMemcpyToSymbol(HIP_SYMBOL(table), want, sizeof want));
    HIP(hipMalloc(&out, sizeof got));
    look<<<1, 16>>>(out);
    HIP(hipMemcpy(got, out, sizeof got, hipMemcpyDeviceToHost));
    for (int i = 0; i < 16; i++) EXPECT(got[i] == want[i]);
    int count = 0;
    HIP(hipMemcpyFromSymbol(&count, HIP_SYMBOL(counter), sizeof count));
    EXPECT(count == 5 + 16);
    std::printf("good\n");
}
