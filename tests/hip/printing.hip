// Device printf, a device function by pointer, recursion (dynamic stack), and what HIP says about the device.
#include "check.h"

#include <cstring>

__device__ __attribute__((noinline)) int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ __attribute__((noinline)) int plus(int a, int b) { return a + b; }
__device__ __attribute__((noinline)) int times(int a, int b) { return a * b; }

__global__ void talk(int* out, bool multiply) {
    int (*operation)(int, int) = multiply ? times : plus;
    out[threadIdx.x] = fibonacci(int(threadIdx.x)) + operation(3, 4);
    if (threadIdx.x < 3) printf("lane %d of block %d: %s %.2f\n", int(threadIdx.x), int(blockIdx.x), "says", 0.5 * int(threadIdx.x));
}

int main() {
    hipDeviceProp_t properties;
    HIP(hipGetDeviceProperties(&properties, 0));
    std::printf("device %s\n", properties.gcnArchName);
    EXPECT(properties.multiProcessorCount > 0 && properties.totalGlobalMem > (size_t(1) << 30));
    int *out, got[12];
    HIP(hipMalloc(&out, sizeof got));
    talk<<<1, 12>>>(out, true);
    HIP(hipDeviceSynchronize());
    HIP(hipMemcpy(got, out, sizeof got, hipMemcpyDeviceToHost));
    int a = 0, b = 1;
    for (int i = 0; i < 12; i++) {
        EXPECT(got[i] == a + 12);
        int next = a + b;
        a = b;
        b = next;
    }
    std::printf("good\n");
}
