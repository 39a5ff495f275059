#!/usr/bin/env python3
"""How many instructions of the host one instruction of a guest wave takes in the compute units, counted by valgrind: a
measure of speed that no other process disturbs. Fails where a kernel takes more than its budget.

usage: .ci/callgrind.py [target/release/rocr]

Each kernel is launched a few times and then more times in another process; the difference leaves out what happens once:
the start of the program, loading, compiling.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

# kernel -> instructions a wave instruction, wave64, one thread, AVX2
BUDGETS = {"alu": 110, "mm_naive": 170, "vadd": 210, "mm_lds": 100}
MATRICES = ["--arg", "f32[65536]:rand", "--arg", "f32[65536]:rand:2", "--arg", "f32[65536]", "--arg", "256"]
LAUNCHES = {
    "vadd": ["--grid", "262144", "--arg", "f32[262144]:rand", "--arg", "f32[262144]:rand:2", "--arg", "f32[262144]",
             "--arg", "262144"],
    "mm_naive": ["--blocks", "1,32", *MATRICES],
    "mm_lds": ["--blocks", "4,8", *MATRICES],
    "alu": ["--grid", "4096", "--arg", "f32[4096]", "--arg", "64", "--arg", "0.999", "--arg", "0.001"],
}
FEW, MANY = 1, 3


def instructions(counts):
    """Instructions of the compute units' functions and of code without a name, which is what they have compiled, from a
    file of callgrind (its manual, "Callgrind Format Specification")."""
    names, counted, total, called = {}, False, 0, False
    for line in counts:
        function = re.match(r"fn=\((\d+)\)(?: (.*))?", line)
        if function:
            number, name = function.groups()
            name = names.setdefault(number, name or "")
            counted = "emulated::cu::" in name or name.startswith("0x")
        elif line.startswith("calls="):
            # the next line has the cost of the function called
            called = True
        elif re.match(r"[+\-*\d]", line):
            if counted and not called:
                total += int(line.split()[-1])
            called = False
        else:
            # the names of functions that are called are given where they first appear
            callee = re.match(r"cfn=\((\d+)\) (.*)", line)
            if callee:
                names.setdefault(*callee.groups())
    return total


def launch(rocr, kernel, times, scratch):
    """Instructions of the host and of the guest's waves in one process."""
    counts = os.path.join(scratch, f"{kernel}-{times}")
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={counts}", rocr, "--json", "launch",
               "testdata/objects/gfx942/O2/bench.hsaco", kernel, "--block", "256", *LAUNCHES[kernel],
               "--threads", "1", "--repeat", str(times)]
    ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "ROCR_SIMD": "avx2"})
    if ran.returncode != 0:
        sys.exit(f"{kernel}: exit {ran.returncode}: {ran.stderr.strip()}")
    with open(counts) as lines:
        host = instructions(lines)
    return host, json.loads(ran.stdout)["counters"]["wave_instructions"]


def main():
    rocr = sys.argv[1] if len(sys.argv) > 1 else "target/release/rocr"
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    if shutil.which("valgrind") is None:
        print("skipped: valgrind is not installed")
        return
    over = False
    with tempfile.TemporaryDirectory() as scratch:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            runs = [(kernel, times) for kernel in BUDGETS for times in (FEW, MANY)]
            counted = dict(zip(runs, pool.map(lambda run: launch(rocr, *run, scratch), runs)))
        for kernel, budget in BUDGETS.items():
            few, few_waves = counted[kernel, FEW]
            many, many_waves = counted[kernel, MANY]
            each = (many - few) / (many_waves - few_waves)
            over |= each > budget
            print(f"{kernel:9} {each:6.1f} of {budget}{'' if each <= budget else '  OVER'}")
    if over:
        sys.exit(1)


main()
