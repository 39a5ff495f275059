// Calls on the device: pointers to functions, virtual functions, recursion and large arrays in private memory (the packet
// processor asks for scratch, and for more), templates, constants, several sizes of scratch on two streams.
#include "check.h"

typedef int (*Operation)(int, int);
__device__ __noinline__ int plus(int a, int b) { return a + b; }
__device__ __noinline__ int minus(int a, int b) { return a - b; }
__device__ __noinline__ int times(int a, int b) { return a * b; }
__device__ Operation operations[] = {plus, minus, times};

__global__ void by_pointer(int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = operations[i % 3](i, 7);
}

struct Shape {
    __device__ virtual float area() const = 0;
};
struct Square : Shape {
    float side;
    __device__ Square(float side) : side(side) {}
    __device__ float area() const override { return side * side; }
};
struct Box : Shape {
    float a, b;
    __device__ Box(float a, float b) : a(a), b(b) {}
    __device__ float area() const override { return a * b; }
};

__global__ void by_table(float* out) {
    int i = threadIdx.x;
    Square square{float(i)};
    Box box{float(i), 3};
    const Shape* shape = i % 2 ? static_cast<const Shape*>(&square) : &box;
    out[i] = shape->area();
}

__device__ __noinline__ int ackermann(int m, int n) {
    if (m == 0) return n + 1;
    return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

__global__ void recursive(int* out) { out[threadIdx.x] = ackermann(2, threadIdx.x % 6); }

template <int N>
__global__ void private_array(const int* in, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int own[N];
    for (int j = 0; j < N; j++) own[j] = i + j * in[j % 8];
    int at = i % N, sum = 0;
    for (int j = 0; j < 16; j++) {
        sum += own[at];
        at = (at * 5 + in[j % 8]) % N;
    }
    out[i] = sum;
}

template <int N>
static int expected(const int* in, int i) {
    std::vector<int> own(N);
    for (int j = 0; j < N; j++) own[j] = i + j * in[j % 8];
    int at = i % N, sum = 0;
    for (int j = 0; j < 16; j++) {
        sum += own[at];
        at = (at * 5 + in[j % 8]) % N;
    }
    return sum;
}

int main() {
    const int n = 768;
    int *out, *in;
    float* areas;
    HIP(hipMalloc(&out, n * sizeof(int)));
    HIP(hipMalloc(&areas, 64 * sizeof(float)));
    std::vector<int> got(n);
    by_pointer<<<n / 256, 256>>>(out);
    HIP(hipMemcpy(got.data(), out, n * sizeof(int), hipMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) EXPECT(got[i] == (i % 3 == 0 ? i + 7 : i % 3 == 1 ? i - 7 : i * 7));
    by_table<<<1, 64>>>(areas);
    std::vector<float> seen(64);
    HIP(hipMemcpy(seen.data(), areas, 64 * sizeof(float), hipMemcpyDeviceToHost));
    for (int i = 0; i < 64; i++) EXPECT(seen[i] == (i % 2 ? float(i * i) : float(i * 3)));
    recursive<<<1, 64>>>(out);
    HIP(hipMemcpy(got.data(), out, 64 * sizeof(int), hipMemcpyDeviceToHost));
    for (int i = 0; i < 64; i++) EXPECT(got[i] == 2 * (i % 6) + 3);

    int host[8] = {3, 1, 4, 1, 5, 9, 2, 6};
    HIP(hipMalloc(&in, sizeof host));
    HIP(hipMemcpy(in, host, sizeof host, hipMemcpyHostToDevice));
    int* other;
    HIP(hipMalloc(&other, n * sizeof(int)));
    hipStream_t stream;
    HIP(hipStreamCreate(&stream));
    std::vector<int> second(n);
    private_array<100><<<n / 256, 256>>>(in, out);
    private_array<40><<<n / 256, 256, 0, stream>>>(in, other);
    HIP(hipMemcpy(got.data(), out, n * sizeof(int), hipMemcpyDeviceToHost));
    HIP(hipMemcpy(second.data(), other, n * sizeof(int), hipMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) EXPECT(got[i] == expected<100>(host, i) && second[i] == expected<40>(host, i));
    private_array<1000><<<n / 256, 256>>>(in, out);
    private_array<500><<<n / 256, 256, 0, stream>>>(in, other);
    HIP(hipDeviceSynchronize());
    HIP(hipMemcpy(got.data(), out, n * sizeof(int), hipMemcpyDeviceToHost));
    HIP(hipMemcpy(second.data(), other, n * sizeof(int), hipMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) EXPECT(got[i] == expected<1000>(host, i) && second[i] == expected<500>(host, i));
    std::printf("good\n");
}
