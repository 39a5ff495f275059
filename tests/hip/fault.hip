// A store to memory that is mapped nowhere: AMD's runtime reports the fault and ends the program.
#include "check.h"

__global__ void stray(int* out) { out[threadIdx.x] = 1; }

int main() {
    int* data;
    HIP(hipMalloc(&data, 4096));
    stray<<<1, 64>>>(reinterpret_cast<int*>(size_t(0x123400000000)));
    hipError_t error = hipDeviceSynchronize();
    std::printf("not reached: %s\n", hipGetErrorString(error));
}
