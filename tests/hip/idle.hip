// Launches after pauses: a device that has gone to sleep wakes, a device that sleeps takes hardly any time of a processor, and a
// child that is forked meanwhile goes its own way.
#include "check.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

__global__ void count(int* at) { atomicAdd(at, 1); }

static double seconds() {
    rusage of;
    getrusage(RUSAGE_SELF, &of);
    auto all = [](timeval time) { return double(time.tv_sec) + 1e-6 * double(time.tv_usec); };
    return all(of.ru_utime) + all(of.ru_stime);
}

// Whether the kernel tells of stores to shared memory (Linux 5.19 and later, unless it is forbidden).
static bool tells_of_stores() {
    int fd = int(syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* for user mode only */));
    if (fd < 0) return false;
    uffdio_api api = {UFFD_API, 1 | 1 << 12, 0};
    bool does = ioctl(fd, UFFDIO_API, &api) == 0;
    close(fd);
    return does;
}

int main() {
    const int rounds = 12;
    int* at;
    HIP(hipMalloc(&at, sizeof(int)));
    HIP(hipMemset(at, 0, sizeof(int)));
    for (int round = 0; round < rounds; round++) {
        // From pauses that a device at work bridges to long ones.
        usleep(useconds_t(20) << round);
        count<<<1, 64>>>(at);
        HIP(hipDeviceSynchronize());
    }
    usleep(50000);
    pid_t child = fork();
    if (child == 0) _exit(0);
    int status = -1;
    EXPECT(waitpid(child, &status, 0) == child && status == 0);
    double before = seconds();
    sleep(1);
    double used = seconds() - before;
    std::printf("%.1f ms in an idle second\n", 1000 * used);
    // One that looks every ms takes 5 and more.
    EXPECT(used < (tells_of_stores() ? 0.004 : 0.1));
    count<<<1, 64>>>(at);
    int got = 0;
    HIP(hipMemcpy(&got, at, sizeof got, hipMemcpyDeviceToHost));
    EXPECT(got == 64 * (rounds + 1));
    std::printf("good\n");
}
