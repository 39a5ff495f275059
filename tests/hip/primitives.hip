// rocPRIM's device-wide algorithms, which are templates: reduce, scan, radix sort and histogram against the host's.
#include "check.h"

#include <algorithm>
#include <numeric>
#include <rocprim/rocprim.hpp>

// Asks for the size of the scratch memory, then does the work.
template <class Call>
static void twice(Call call) {
    size_t bytes = 0;
    HIP(call(static_cast<void*>(nullptr), bytes));
    void* scratch = nullptr;
    HIP(hipMalloc(&scratch, bytes));
    HIP(call(scratch, bytes));
    HIP(hipDeviceSynchronize());
    HIP(hipFree(scratch));
}

int main() {
    const size_t n = 100003;
    std::vector<int> in(n), out(n), want(n);
    for (size_t i = 0; i < n; i++) in[i] = int((i * 2654435761u) >> 12) & 0xfffff;
    int *a, *b;
    unsigned* bins;
    HIP(hipMalloc(&a, n * sizeof(int)));
    HIP(hipMalloc(&b, n * sizeof(int)));
    HIP(hipMalloc(&bins, 64 * sizeof(unsigned)));
    HIP(hipMemcpy(a, in.data(), n * sizeof(int), hipMemcpyHostToDevice));

    twice([&](void* scratch, size_t& bytes) {
        return rocprim::reduce(scratch, bytes, a, b, 0, n, rocprim::plus<int>());
    });
    int sum = 0;
    HIP(hipMemcpy(&sum, b, sizeof sum, hipMemcpyDeviceToHost));
    EXPECT(unsigned(sum) == std::accumulate(in.begin(), in.end(), 0u));

    twice([&](void* scratch, size_t& bytes) {
        return rocprim::inclusive_scan(scratch, bytes, a, b, n, rocprim::maximum<int>());
    });
    HIP(hipMemcpy(out.data(), b, n * sizeof(int), hipMemcpyDeviceToHost));
    std::partial_sum(in.begin(), in.end(), want.begin(), [](int x, int y) { return std::max(x, y); });
    EXPECT(out == want);

    twice([&](void* scratch, size_t& bytes) { return rocprim::radix_sort_keys(scratch, bytes, a, b, n); });
    HIP(hipMemcpy(out.data(), b, n * sizeof(int), hipMemcpyDeviceToHost));
    want = in;
    std::sort(want.begin(), want.end());
    EXPECT(out == want);

    twice([&](void* scratch, size_t& bytes) {
        return rocprim::histogram_even(scratch, bytes, a, n, bins, 65u, 0, 1 << 20);
    });
    std::vector<unsigned> got(64), counts(64);
    HIP(hipMemcpy(got.data(), bins, 64 * sizeof(unsigned), hipMemcpyDeviceToHost));
    for (int value : in) counts[value >> 14]++;
    EXPECT(got == counts);
    std::printf("good\n");
}
