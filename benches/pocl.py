#!/usr/bin/env python3
"""The four kernels of testdata/kernels/bench.cl on PoCL, the CPU itself, and on the embedded GPU, in turn.

    benches/pocl.py [--rocr target/release/rocr] [--threads 2] [--rounds 5] [--targets gfx942,gfx1100]

Prints milliseconds of device time, medians of all rounds, and their ratio. Results are compared with numpy once. Needs PoCL
(Debian's pocl-opencl-icd) and the pip packages pyopencl and numpy; nothing else runs this.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "testdata/kernels/bench.cl"
VADD, SIDE, ITEMS, ROUNDS_OF_ALU = 1 << 20, 256, 1 << 16, 64
# kernel: grid in work-items, arguments in rocr's words; buffers are f32
SHAPES = {
    "vadd": ([VADD, 1], [f"f32[{VADD}]:iota", f"f32[{VADD}]:ones", f"f32[{VADD}]", str(VADD)]),
    "mm_naive": ([SIDE, SIDE], [f"f32[{SIDE * SIDE}]:ones"] * 2 + [f"f32[{SIDE * SIDE}]", str(SIDE)]),
    "mm_lds": ([SIDE // 16 * 256, SIDE // 16], [f"f32[{SIDE * SIDE}]:ones"] * 2 + [f"f32[{SIDE * SIDE}]", str(SIDE)]),
    "alu": ([ITEMS, 1], [f"f32[{ITEMS}]", str(ROUNDS_OF_ALU), "0.5", "1.0"]),
}


def on_rocr(rocr, target, name, threads):
    """Milliseconds of some launches."""
    grid, words = SHAPES[name]
    command = [rocr, "bench", "kernel", ROOT / f"testdata/objects/{target}/O2/bench.hsaco", name, "--json",
               "--grid", ",".join(map(str, grid)), "--block", "256", "--threads", str(threads), "--min-runs", "5", "--time", "0.3s"]
    for word in words:
        command += ["--arg", word]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name} on {target}: {done.stderr or done.stdout}")
    series = json.loads(done.stdout)["benchmarks"][0]
    return [ns / 1e6 for ns in series["device_time_ns"]["samples"]]


class OnPocl:
    """The kernels on PoCL's CPU device."""

    def __init__(self):
        import numpy
        import pyopencl

        self.cl, self.np = pyopencl, numpy
        platforms = [p for p in pyopencl.get_platforms() if "Portable Computing Language" in p.name]
        if not platforms:
            sys.exit("PoCL is not installed (Debian: pocl-opencl-icd)")
        self.name = platforms[0].version
        context = pyopencl.Context(platforms[0].get_devices())
        profiling = pyopencl.command_queue_properties.PROFILING_ENABLE
        self.queue = pyopencl.CommandQueue(context, properties=profiling)
        self.program = pyopencl.Program(context, SOURCE.read_text()).build()
        self.context, self.kernels = context, {}

    def buffer(self, array):
        flags = self.cl.mem_flags
        return self.cl.Buffer(self.context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=array)

    def run(self, name, times):
        np, grid = self.np, SHAPES[name][0]
        if name not in self.kernels:
            kernel = self.cl.Kernel(self.program, name)
            if name == "alu":
                out = self.buffer(np.zeros(ITEMS, np.float32))
                arguments = [out, np.int32(ROUNDS_OF_ALU), np.float32(0.5), np.float32(1)]
                # 8 FMAs of each round halve and add one: the four registers end at 2
                expected = np.full(ITEMS, 8, np.float32)
            else:
                count = VADD if name == "vadd" else SIDE * SIDE
                ones = np.ones(count, np.float32)
                a = np.arange(count, dtype=np.float32) if name == "vadd" else ones
                out = self.buffer(np.zeros(count, np.float32))
                arguments = [self.buffer(a), self.buffer(ones), out, np.int32(VADD if name == "vadd" else SIDE)]
                expected = a + 1 if name == "vadd" else np.full(count, SIDE, np.float32)
            kernel.set_args(*arguments)
            self.cl.enqueue_nd_range_kernel(self.queue, kernel, grid, (256, 1)).wait()
            got = np.empty_like(expected)
            self.cl.enqueue_copy(self.queue, got, out)
            if not np.allclose(got, expected):
                sys.exit(f"{name} on PoCL is wrong: {got} instead of {expected}")
            self.kernels[name] = (kernel, arguments)
        kernel = self.kernels[name][0]
        events = [self.cl.enqueue_nd_range_kernel(self.queue, kernel, grid, (256, 1)) for _ in range(times)]
        events[-1].wait()
        return [(event.profile.end - event.profile.start) / 1e6 for event in events]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rocr", default=str(ROOT / "target/release/rocr"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--targets", default="gfx942,gfx1100")
    options = parser.parse_args()
    os.environ["POCL_MAX_PTHREAD_COUNT"] = str(options.threads)
    os.environ.setdefault("POCL_CACHE_DIR", tempfile.mkdtemp())
    pocl, targets = OnPocl(), options.targets.split(",")
    print(f"{pocl.name}; {options.threads} threads; medians of {options.rounds} rounds, milliseconds")
    print(f"{'kernel':<10}{'PoCL':>9}" + "".join(f"{target:>12}{'ratio':>8}" for target in targets))
    for name in SHAPES:
        pocl.run(name, 3)
        cpu, gpu = [], {target: [] for target in targets}
        for _ in range(options.rounds):
            cpu += pocl.run(name, 10)
            for target in targets:
                gpu[target] += on_rocr(options.rocr, target, name, options.threads)
        base = statistics.median(cpu)
        row = f"{name:<10}{base:>9.3f}"
        for target in targets:
            median = statistics.median(gpu[target])
            row += f"{median:>12.3f}{median / base:>8.2f}"
        print(row, flush=True)


if __name__ == "__main__":
    main()
