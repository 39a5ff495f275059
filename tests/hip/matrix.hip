// A tiled matrix product in double precision, a transposition through LDS, a stencil with halos, and a prefix sum.
#include "check.h"

constexpr int TILE = 16;

__global__ void product(const double* a, const double* b, double* c, int n) {
    __shared__ double left[TILE][TILE], right[TILE][TILE];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    double sum = 0;
    for (int k = 0; k < n; k += TILE) {
        left[threadIdx.y][threadIdx.x] = a[y * n + k + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + x];
        __syncthreads();
        for (int i = 0; i < TILE; i++) sum += left[threadIdx.y][i] * right[i][threadIdx.x];
        __syncthreads();
    }
    c[y * n + x] = sum;
}

__global__ void transpose(const double* in, double* out, int n) {
    __shared__ double tile[TILE][TILE + 1];
    tile[threadIdx.y][threadIdx.x] = in[(blockIdx.y * TILE + threadIdx.y) * n + blockIdx.x * TILE + threadIdx.x];
    __syncthreads();
    out[(blockIdx.x * TILE + threadIdx.y) * n + blockIdx.y * TILE + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

__global__ void stencil(const int* in, int* out, int n) {
    __shared__ int part[256 + 2];
    int i = blockIdx.x * 256 + threadIdx.x;
    part[threadIdx.x + 1] = i < n ? in[i] : 0;
    if (threadIdx.x == 0) part[0] = i > 0 ? in[i - 1] : 0;
    if (threadIdx.x == 255) part[257] = i + 1 < n ? in[i + 1] : 0;
    __syncthreads();
    if (i < n) out[i] = part[threadIdx.x] + part[threadIdx.x + 1] + part[threadIdx.x + 2];
}

__global__ void scan(int* data) {
    __shared__ int part[512];
    int t = threadIdx.x;
    part[t] = data[t];
    __syncthreads();
    for (int step = 1; step < 512; step *= 2) {
        int add = t >= step ? part[t - step] : 0;
        __syncthreads();
        part[t] += add;
        __syncthreads();
    }
    data[t] = part[t];
}

int main() {
    const int n = 96;
    std::vector<double> a(n * n), b(n * n), c(n * n), t(n * n);
    for (int i = 0; i < n * n; i++) a[i] = (i * 7 % 13) - 6, b[i] = (i * 5 % 11) - 5;
    double *da, *db, *dc;
    const size_t bytes = n * n * sizeof(double);
    HIP(hipMalloc(&da, bytes));
    HIP(hipMalloc(&db, bytes));
    HIP(hipMalloc(&dc, bytes));
    HIP(hipMemcpy(da, a.data(), bytes, hipMemcpyHostToDevice));
    HIP(hipMemcpy(db, b.data(), bytes, hipMemcpyHostToDevice));
    dim3 grid(n / TILE, n / TILE), block(TILE, TILE);
    product<<<grid, block>>>(da, db, dc, n);
    HIP(hipMemcpy(c.data(), dc, bytes, hipMemcpyDeviceToHost));
    for (int y = 0; y < n; y++)
        for (int x = 0; x < n; x++) {
            double sum = 0;
            for (int k = 0; k < n; k++) sum += a[y * n + k] * b[k * n + x];
            EXPECT(c[y * n + x] == sum);
        }
    transpose<<<grid, block>>>(da, dc, n);
    HIP(hipMemcpy(t.data(), dc, bytes, hipMemcpyDeviceToHost));
    for (int y = 0; y < n; y++)
        for (int x = 0; x < n; x++) EXPECT(t[x * n + y] == a[y * n + x]);

    const int m = 1000;
    std::vector<int> in(m), out(m);
    for (int i = 0; i < m; i++) in[i] = i * i % 101;
    int *di, *dr;
    HIP(hipMalloc(&di, m * sizeof(int)));
    HIP(hipMalloc(&dr, m * sizeof(int)));
    HIP(hipMemcpy(di, in.data(), m * sizeof(int), hipMemcpyHostToDevice));
    stencil<<<(m + 255) / 256, 256>>>(di, dr, m);
    HIP(hipMemcpy(out.data(), dr, m * sizeof(int), hipMemcpyDeviceToHost));
    for (int i = 0; i < m; i++)
        EXPECT(out[i] == (i ? in[i - 1] : 0) + in[i] + (i + 1 < m ? in[i + 1] : 0));
    scan<<<1, 512>>>(di);
    HIP(hipMemcpy(out.data(), di, 512 * sizeof(int), hipMemcpyDeviceToHost));
    int sum = 0;
    for (int i = 0; i < 512; i++) {
        sum += in[i];
        EXPECT(out[i] == sum);
    }
    std::printf("good\n");
}
