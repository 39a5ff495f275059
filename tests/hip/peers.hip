// Two GPUs: each has its own memory and kernels, copies go between them, and one reads the other's memory.
#include "check.h"

__global__ void fill(int* out, int base) { out[threadIdx.x] = base + int(threadIdx.x); }
__global__ void sum(const int* a, const int* b, int* c) { c[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }

int main() {
    int count = 0;
    HIP(hipGetDeviceCount(&count));
    EXPECT(count == 2);
    int *on[2], *result, can = 0;
    for (int device = 0; device < 2; device++) {
        HIP(hipSetDevice(device));
        HIP(hipMalloc(&on[device], 256 * sizeof(int)));
        fill<<<1, 256>>>(on[device], 1000 * (device + 1));
        HIP(hipDeviceSynchronize());
        HIP(hipDeviceCanAccessPeer(&can, device, 1 - device));
        EXPECT(can == 1);
        HIP(hipDeviceEnablePeerAccess(1 - device, 0));
    }
    HIP(hipSetDevice(0));
    HIP(hipMalloc(&result, 256 * sizeof(int)));
    sum<<<1, 256>>>(on[0], on[1], result);
    int got[256];
    HIP(hipMemcpy(got, result, sizeof got, hipMemcpyDeviceToHost));
    for (int i = 0; i < 256; i++) EXPECT(got[i] == 3000 + 2 * i);

    HIP(hipMemcpyPeer(on[0], 0, on[1], 1, 256 * sizeof(int)));
    HIP(hipMemcpy(got, on[0], sizeof got, hipMemcpyDeviceToHost));
    for (int i = 0; i < 256; i++) EXPECT(got[i] == 2000 + i);
    HIP(hipMemcpyPeerAsync(on[1], 1, result, 0, 256 * sizeof(int), 0));
    HIP(hipDeviceSynchronize());
    HIP(hipSetDevice(1));
    HIP(hipMemcpy(got, on[1], sizeof got, hipMemcpyDeviceToHost));
    for (int i = 0; i < 256; i++) EXPECT(got[i] == 3000 + 2 * i);
    std::printf("good\n");
}
