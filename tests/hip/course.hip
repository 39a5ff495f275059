// What a course holds: tiled multiplication, stencils, scans, sorting, histograms, votes, reductions over lanes, grid-stride
// loops, atomics of every kind. Every result is compared with the host's.
#include "check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

template <class T>
struct Buffer {
    T* at = nullptr;
    size_t count;
    explicit Buffer(size_t count) : count(count) { HIP(hipMalloc(&at, count * sizeof(T))); }
    explicit Buffer(const std::vector<T>& from) : Buffer(from.size()) {
        HIP(hipMemcpy(at, from.data(), count * sizeof(T), hipMemcpyHostToDevice));
    }
    ~Buffer() { HIP(hipFree(at)); }
    std::vector<T> host() const {
        std::vector<T> to(count);
        HIP(hipMemcpy(to.data(), at, count * sizeof(T), hipMemcpyDeviceToHost));
        return to;
    }
};

static uint32_t state = 12345;
static uint32_t next() { return state = state * 1664525u + 1013904223u; }

template <int TILE>
__global__ void multiply(const float* a, const float* b, float* c, int m, int k, int n) {
    __shared__ float as[TILE][TILE], bs[TILE][TILE + 1];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int tile = 0; tile < (k + TILE - 1) / TILE; tile++) {
        int ka = tile * TILE + threadIdx.x, kb = tile * TILE + threadIdx.y;
        as[threadIdx.y][threadIdx.x] = row < m && ka < k ? a[row * k + ka] : 0;
        bs[threadIdx.y][threadIdx.x] = column < n && kb < k ? b[kb * n + column] : 0;
        __syncthreads();
        for (int i = 0; i < TILE; i++) sum += as[threadIdx.y][i] * bs[i][threadIdx.x];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}

static void multiplication() {
    const int m = 53, k = 71, n = 37;
    std::vector<float> a(m * k), b(k * n);
    // Small integers: sums are exact in any order.
    for (float& x : a) x = float(next() >> 28) - 8;
    for (float& x : b) x = float(next() >> 28) - 8;
    Buffer<float> da(a), db(b), dc(m * n);
    multiply<16><<<dim3((n + 15) / 16, (m + 15) / 16), dim3(16, 16)>>>(da.at, db.at, dc.at, m, k, n);
    std::vector<float> c = dc.host();
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            float want = 0;
            for (int x = 0; x < k; x++) want += a[i * k + x] * b[x * n + j];
            EXPECT(c[i * n + j] == want);
        }
}

template <int RADIUS>
__global__ void blur(const int* in, int* out, int n) {
    extern __shared__ int tile[];
    int i = blockIdx.x * blockDim.x + threadIdx.x, at = threadIdx.x + RADIUS;
    tile[at] = i < n ? in[i] : 0;
    if (threadIdx.x < RADIUS) {
        tile[threadIdx.x] = i >= RADIUS ? in[i - RADIUS] : 0;
        int right = i + blockDim.x;
        tile[at + blockDim.x] = right < n ? in[right] : 0;
    }
    __syncthreads();
    int sum = 0;
    for (int d = -RADIUS; d <= RADIUS; d++) sum += tile[at + d];
    if (i < n) out[i] = sum;
}

__global__ void heat(const double* in, double* out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    if (x == 0 || y == 0 || x == w - 1 || y == h - 1) {
        out[y * w + x] = in[y * w + x];
        return;
    }
    out[y * w + x] = 0.25 * (in[y * w + x - 1] + in[y * w + x + 1] + in[(y - 1) * w + x] + in[(y + 1) * w + x]);
}

static void stencils() {
    const int n = 1000, radius = 3, block = 128;
    std::vector<int> in(n);
    for (int& x : in) x = next() >> 20;
    Buffer<int> din(in), dout(n);
    blur<radius><<<(n + block - 1) / block, block, (block + 2 * radius) * sizeof(int)>>>(din.at, dout.at, n);
    std::vector<int> out = dout.host();
    for (int i = 0; i < n; i++) {
        int want = 0;
        for (int d = -radius; d <= radius; d++)
            if (i + d >= 0 && i + d < n) want += in[i + d];
        EXPECT(out[i] == want);
    }
    const int w = 45, h = 29, steps = 6;
    std::vector<double> now(w * h);
    for (double& x : now) x = double(next() >> 16);
    Buffer<double> a(now), b(now);
    for (int step = 0; step < steps; step++)
        heat<<<dim3((w + 15) / 16, (h + 7) / 8), dim3(16, 8)>>>(step % 2 ? b.at : a.at, step % 2 ? a.at : b.at, w, h);
    std::vector<double> got = a.host(), then = now;
    for (int step = 0; step < steps; step++) {
        for (int y = 1; y < h - 1; y++)
            for (int x = 1; x < w - 1; x++)
                then[y * w + x] = 0.25 * (now[y * w + x - 1] + now[y * w + x + 1] + now[(y - 1) * w + x] + now[(y + 1) * w + x]);
        now = then;
    }
    EXPECT(got == now);
}

__global__ void scan(const int* in, int* out, int* totals, int n) {
    __shared__ int values[512];
    int t = threadIdx.x, first = blockIdx.x * 512;
    for (int i = t; i < 512; i += 256) values[i] = first + i < n ? in[first + i] : 0;
    for (int step = 1; step < 512; step *= 2) {
        __syncthreads();
        int at = (t + 1) * step * 2 - 1;
        if (at < 512) values[at] += values[at - step];
    }
    __syncthreads();
    if (t == 0) {
        if (totals) totals[blockIdx.x] = values[511];
        values[511] = 0;
    }
    for (int step = 256; step > 0; step /= 2) {
        __syncthreads();
        int at = (t + 1) * step * 2 - 1;
        if (at < 512) {
            int left = values[at - step];
            values[at - step] = values[at];
            values[at] += left;
        }
    }
    __syncthreads();
    for (int i = t; i < 512; i += 256)
        if (first + i < n) out[first + i] = values[i];
}

__global__ void add_totals(int* out, const int* totals, int n) {
    int i = blockIdx.x * 512 + threadIdx.x;
    for (int step = 0; step < 2; step++, i += 256)
        if (i < n) out[i] += totals[blockIdx.x];
}

static void scans() {
    const int n = 9001, blocks = (n + 511) / 512;
    std::vector<int> in(n), want(n);
    for (int& x : in) x = int(next() >> 24) - 100;
    std::exclusive_scan(in.begin(), in.end(), want.begin(), 0);
    Buffer<int> din(in), out(n), totals(blocks), before(blocks);
    scan<<<blocks, 256>>>(din.at, out.at, totals.at, n);
    scan<<<1, 256>>>(totals.at, before.at, nullptr, blocks);
    add_totals<<<blocks, 256>>>(out.at, before.at, n);
    EXPECT(out.host() == want);
}

__global__ void bitonic(uint32_t* keys, int j, int k) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, other = i ^ j;
    if (other <= i) return;
    bool ascending = (i & k) == 0;
    uint32_t a = keys[i], b = keys[other];
    if ((a > b) == ascending) {
        keys[i] = b;
        keys[other] = a;
    }
}

static void sorting() {
    const int n = 1 << 11;
    std::vector<uint32_t> keys(n);
    for (uint32_t& x : keys) x = next();
    Buffer<uint32_t> device(keys);
    for (int k = 2; k <= n; k *= 2)
        for (int j = k / 2; j > 0; j /= 2) bitonic<<<n / 256, 256>>>(device.at, j, k);
    std::sort(keys.begin(), keys.end());
    EXPECT(device.host() == keys);
}

__global__ void histogram(const uint8_t* data, int n, unsigned* bins) {
    __shared__ unsigned own[256];
    own[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&own[data[i]], 1u);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

__device__ float atomic_max(float* at, float value) {
    int* bits = reinterpret_cast<int*>(at);
    int old = *bits, assumed;
    do {
        assumed = old;
        if (__int_as_float(assumed) >= value) break;
        old = atomicCAS(bits, assumed, __float_as_int(value));
    } while (old != assumed);
    return __int_as_float(old);
}

__global__ void atomics(const float* in, int n, float* most, double* sum, unsigned* words, unsigned long long* wide) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomic_max(most, in[i]);
    atomicAdd(sum, double(in[i]));
    atomicMin(&words[0], unsigned(i) + 5);
    atomicMax(&words[1], unsigned(i));
    atomicAnd(&words[2], ~(1u << (i % 32)));
    atomicOr(&words[3], 1u << (i % 20));
    atomicXor(&words[4], unsigned(i));
    atomicSub(&words[5], 1u);
    atomicInc(&words[6], 99u);
    if (i == 17) atomicExch(&words[7], 4711u);
    atomicAdd(&wide[0], 1ull << 33);
    atomicMax(&wide[1], (unsigned long long)i << 40);
}

static void counting() {
    const int n = 20000;
    std::vector<uint8_t> data(n);
    std::vector<unsigned> want(256);
    for (uint8_t& x : data) want[x = uint8_t(next() >> 24)]++;
    Buffer<uint8_t> ddata(data);
    Buffer<unsigned> bins(std::vector<unsigned>(256, 0));
    histogram<<<8, 256>>>(ddata.at, n, bins.at);
    EXPECT(bins.host() == want);

    const int m = 2000;
    std::vector<float> in(m);
    for (float& x : in) x = float(int(next() >> 16)) - 30000;
    Buffer<float> din(in), most(std::vector<float>{-1e30f});
    Buffer<double> sum(std::vector<double>{0});
    Buffer<unsigned> words(std::vector<unsigned>{~0u, 0, ~0u, 0, 0, 5000, 0, 1});
    Buffer<unsigned long long> wide(std::vector<unsigned long long>{0, 0});
    atomics<<<(m + 127) / 128, 128>>>(din.at, m, most.at, sum.at, words.at, wide.at);
    EXPECT(most.host()[0] == *std::max_element(in.begin(), in.end()));
    EXPECT(sum.host()[0] == std::accumulate(in.begin(), in.end(), 0.0));
    unsigned exclusive = 0;
    for (unsigned i = 0; i < m; i++) exclusive ^= i;
    std::vector<unsigned> expected{5, m - 1, 0, (1u << 20) - 1, exclusive, 5000 - m, m % 100, 4711};
    EXPECT(words.host() == expected);
    EXPECT(wide.host()[0] == (unsigned long long)m << 33 && wide.host()[1] == (unsigned long long)(m - 1) << 40);
}

__global__ void lanes(const int* in, int* sums, int* up, int* crossed, unsigned long long* votes, int* flags) {
    int t = threadIdx.x, i = blockIdx.x * blockDim.x + t, value = in[i], sum = value;
    for (int step = warpSize / 2; step > 0; step /= 2) sum += __shfl_down(sum, step);
    if (t % warpSize == 0) sums[i / warpSize] = sum;
    up[i] = __shfl_up(value, 1);
    crossed[i] = __shfl_xor(value, 5) * 1000 + __shfl(value, 3, 8);
    unsigned long long vote = __ballot(value & 1);
    if (t % warpSize == 0) votes[i / warpSize] = vote;
    flags[i] = (__any(value > 900) != 0) | (__all(value >= 0) != 0) << 1 | __popcll(vote) << 2;
}

static void waves() {
    int wave = 0;
    HIP(hipDeviceGetAttribute(&wave, hipDeviceAttributeWarpSize, 0));
    const int n = 512;
    std::vector<int> in(n);
    for (int& x : in) x = next() >> 22;
    Buffer<int> din(in), sums(n / wave), up(n), crossed(n), flags(n);
    Buffer<unsigned long long> votes(n / wave);
    lanes<<<n / 256, 256>>>(din.at, sums.at, up.at, crossed.at, votes.at, flags.at);
    std::vector<int> got_sums = sums.host(), got_up = up.host(), got_crossed = crossed.host(), got_flags = flags.host();
    std::vector<unsigned long long> got_votes = votes.host();
    for (int w = 0; w < n / wave; w++) {
        const int* own = &in[w * wave];
        unsigned long long vote = 0;
        for (int i = 0; i < wave; i++) vote |= (unsigned long long)(own[i] & 1) << i;
        EXPECT(got_sums[w] == std::accumulate(own, own + wave, 0) && got_votes[w] == vote);
        int any = std::any_of(own, own + wave, [](int x) { return x > 900; });
        for (int i = 0; i < wave; i++) {
            EXPECT(got_up[w * wave + i] == own[i ? i - 1 : 0]);
            EXPECT(got_crossed[w * wave + i] == own[i ^ 5] * 1000 + own[i / 8 * 8 + 3]);
            EXPECT(got_flags[w * wave + i] == (any | 2 | __builtin_popcountll(vote) << 2));
        }
    }
}

__global__ void transpose(const float* in, float* out, int w, int h) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < w && y + j < h) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * w + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        if (x < h && y + j < w) out[(y + j) * h + x] = tile[threadIdx.x][threadIdx.y + j];
}

static void transposition() {
    const int w = 100, h = 70;
    std::vector<float> in(w * h);
    std::iota(in.begin(), in.end(), 0.0f);
    Buffer<float> din(in), dout(w * h);
    transpose<<<dim3((w + 31) / 32, (h + 31) / 32), dim3(32, 8)>>>(din.at, dout.at, w, h);
    std::vector<float> out = dout.host();
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++) EXPECT(out[x * h + y] == in[y * w + x]);
}

// Monte Carlo with a generator of one's own in every thread, and mathematical functions within their documented error.
__global__ void pi(unsigned* hits, int tries) {
    uint32_t x = (blockIdx.x * blockDim.x + threadIdx.x) * 747796405u + 2891336453u;
    unsigned own = 0;
    for (int i = 0; i < tries; i++) {
        x = x * 1664525u + 1013904223u;
        unsigned a = x >> 16;
        x = x * 1664525u + 1013904223u;
        unsigned b = x >> 16;
        own += a * a / 65536u + b * b / 65536u < 65536u;
    }
    atomicAdd(hits, own);
}

__global__ void functions(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = in[i];
    out[5 * i] = sinf(x);
    out[5 * i + 1] = expf(x);
    out[5 * i + 2] = logf(x + 1);
    out[5 * i + 3] = sqrtf(x);
    out[5 * i + 4] = powf(x, 1.25f);
}

static void numbers() {
    const int threads = 1024, tries = 40;
    Buffer<unsigned> hits(std::vector<unsigned>{0});
    pi<<<threads / 256, 256>>>(hits.at, tries);
    unsigned want = 0;
    for (uint32_t t = 0; t < threads; t++) {
        uint32_t x = t * 747796405u + 2891336453u;
        for (int i = 0; i < tries; i++) {
            x = x * 1664525u + 1013904223u;
            unsigned a = x >> 16;
            x = x * 1664525u + 1013904223u;
            unsigned b = x >> 16;
            want += a * a / 65536u + b * b / 65536u < 65536u;
        }
    }
    EXPECT(hits.host()[0] == want);
    const int n = 200;
    std::vector<float> in(n);
    for (int i = 0; i < n; i++) in[i] = 0.05f * float(i) + 0.01f;
    Buffer<float> din(in), dout(5 * n);
    functions<<<1, 256>>>(din.at, dout.at, n);
    std::vector<float> out = dout.host();
    for (int i = 0; i < n; i++) {
        double x = in[i], want[5] = {std::sin(x), std::exp(x), std::log(x + 1), std::sqrt(x), std::pow(x, 1.25)};
        for (int f = 0; f < 5; f++) EXPECT(std::fabs(out[5 * i + f] - want[f]) <= 4e-6 * std::max(1.0, std::fabs(want[f])));
    }
}

int main() {
    multiplication();
    stencils();
    scans();
    sorting();
    counting();
    waves();
    transposition();
    numbers();
    std::printf("good\n");
}
