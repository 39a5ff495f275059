#!/usr/bin/env python3
"""Differential test: random programs compiled for amdgcn and for the host must store equal bits (README.md beside this file).

    testdata/random/run.py                              500 programs of each kind for every family
    testdata/random/run.py --families gfx90a --first 7 --programs 1 --keep DIR
    testdata/random/run.py --state FILE                 goes on where the run that wrote FILE ended

Needs Debian's clang-19 and lld-19, csmith for that kind, and for gfx950 and gfx1250 a clang 22 (`--clang22`).
A family's optimisation level and wave size are drawn from the seed.
"""

import argparse
import concurrent.futures
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading

from generate import generate

HERE = pathlib.Path(__file__).resolve().parent
LANES, MEM_BYTES = 100, 256
FLAGS = ["-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off", "-w", "-I", str(HERE)]
FAMILIES = ["gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1010", "gfx1030", "gfx1100", "gfx1151",
            "gfx1200", "gfx1201", "gfx1250"]
NEEDS_22 = {"gfx950", "gfx1250"}
ONE_WAVE_SIZE = {"gfx1250"}
HOST_SECONDS = 0.05
CASE = "clang 22 -O3: the temporary of a switch's case overwrites a live register"
HALF = "clang 19 from -O1 on: the upper half of `x | ~(u64)n`, n a count of bits, becomes that of x"
WHOLE_WAVE = ("clang -O0: a callee-saved VGPR, kept for the caller in the active lanes alone, is reloaded or written in all lanes, "
              "so that the caller's return address in its other lanes is lost")
# programs that differ through the compiler's fault, as the assembly shows: they do not count
KNOWN = {
    ("random", 182, "gfx950"): CASE,
    **{("random", 314, family): HALF
       for family in ["gfx900", "gfx906", "gfx908", "gfx942", "gfx1030", "gfx1100", "gfx1151"]},
    **{("random", 439, family): HALF
       for family in ["gfx900", "gfx906", "gfx908", "gfx90a", "gfx1010", "gfx1151", "gfx1200", "gfx1201"]},
    **{("csmith", seed, family): WHOLE_WAVE for seed, families in {
        88: ["gfx906", "gfx908"],
        129: ["gfx906"],
        192: ["gfx908", "gfx90a"],
        229: ["gfx942"],
        235: ["gfx900", "gfx942"],
        247: ["gfx1010"],
        266: ["gfx908", "gfx90a", "gfx1010"],
        358: ["gfx906", "gfx90a", "gfx942"],
        394: ["gfx900", "gfx908", "gfx90a"],
        426: ["gfx90a"],
        471: ["gfx950"],
        537: ["gfx900", "gfx908", "gfx90a", "gfx942"],
        573: ["gfx942"],
    }.items() for family in families},
}
DEVICE_SECONDS = 120


class Skip(Exception):
    """The program is of no use: the host says nothing, or a compiler does not take it."""


def quiet(command, seconds=120, **more):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=seconds, **more)


def source(kind, seed, folder):
    path = folder / "program.c"
    if kind == "random":
        path.write_text(generate(seed))
        return path
    options = ["--seed", seed, "--no-argc", "--no-packed-struct", "--no-bitfields", "--concise"]
    if seed % 2:
        options.append("--float")
    try:
        text = quiet(["csmith", *options], 20, cwd=folder).stdout
    except subprocess.TimeoutExpired as e:
        raise Skip("csmith does not end") from e
    text = text.replace("#include <float.h>", "").replace("#include <math.h>", "")
    path.write_text(text + '\n#include "csmith_ends.h"\n')
    return path


def host(kind, seed, folder, clang):
    """Files with the inputs and with what the host stores."""
    program = folder / "host"
    # csmith converts floats to integers without a look at their size, which C leaves undefined: such a program ends here
    trap = [f"-fsanitize{more}=float-cast-overflow" for more in ("", "-trap")] if kind == "csmith" else []
    # unoptimised, csmith's loops take as long as they do in the slowest build for a device
    level = "-O0" if kind == "csmith" else "-O1"
    done = quiet([clang, level, "-march=haswell", "-Xclang", "-ffloat16-excess-precision=none", *trap, *FLAGS,
                  folder / "program.c", "-o", program, "-lm"])
    if done.returncode:
        raise Skip("host compiler: " + done.stderr.strip().splitlines()[0])
    want = folder / "want"
    files = []
    if kind == "random":
        (folder / "in").write_bytes(random.Random(f"input {seed}").randbytes(4096))
        files = [folder / "in"]
    try:
        if quiet([program, *files, want], HOST_SECONDS).returncode:
            raise Skip("the host program failed")
    except subprocess.TimeoutExpired as e:
        raise Skip("the host program does not end") from e
    data = want.read_bytes()
    if kind == "random":
        (folder / "mem").write_bytes(data[:LANES * MEM_BYTES])
        (folder / "out").write_bytes(data[LANES * MEM_BYTES:])
    else:
        (folder / "out").write_bytes(data)


def drawn(kind, seed, family):
    """The level and the wave size of this seed for a family."""
    rng = random.Random(f"{kind} {seed} {family}")
    level = rng.choice(["-O0", "-O2", "-O3"])
    wave64 = family.startswith("gfx1") and family not in ONE_WAVE_SIZE and rng.random() < 0.3
    return level, wave64


def build(kind, seed, family, folder, args):
    level, wave64 = drawn(kind, seed, family)
    clang = args.clang22.split() if family in NEEDS_22 else [args.clang]
    target = folder / f"{family}.hsaco"
    command = [*clang, level, "-target", "amdgcn-amd-amdhsa", f"-mcpu={family}", "-nogpulib", *FLAGS]
    if wave64:
        command.append("-mwavefrontsize64")
    try:
        done = quiet([*command, folder / "program.c", "-o", target])
    except subprocess.TimeoutExpired as e:
        raise Skip(f"{family} compiler: does not end") from e
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "error" in line] or done.stderr.splitlines() or ["?"]
        raise Skip(f"{family} compiler: {lines[0]}")
    return target, level + (" wave64" if wave64 else "")


def launch_words(kind, folder):
    """The options of `rocr launch` that run a program and check it."""
    if kind == "random":
        words = (folder / "out").stat().st_size // 8
        memory = LANES * MEM_BYTES
        return ["--grid", "128", "--block", "64", "--arg", f"u8:@{folder / 'in'}", "--arg", f"u8[{memory}]:zeros",
                "--arg", f"u64[{words}]:zeros", "--expect", f"1=u8:@{folder / 'mem'}",
                "--expect", f"2=u64:@{folder / 'out'}"]
    return ["--grid", "64", "--block", "64", "--arg", "u32[1]:zeros", "--expect", f"0=u32:@{folder / 'out'}"]


def check(kind, seed, family, folder, args):
    """What became of one program on one family: ("ok" | "skip" | "FAIL", detail)."""
    if reason := KNOWN.get((kind, seed, family)):
        return "skip", reason
    try:
        target, how = build(kind, seed, family, folder, args)
    except Skip as e:
        return "skip", str(e)
    command = [args.rocr, "launch", target, *launch_words(kind, folder), "--timeout", f"{DEVICE_SECONDS}s", "--threads", "1"]
    try:
        done = quiet(command, DEVICE_SECONDS + 20)
    except subprocess.TimeoutExpired:
        return "FAIL", how + ": rocr does not end"
    if done.returncode == 0:
        return "ok", how
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith(("wrong", "error"))]
    if args.keep:
        keep = args.keep / f"{kind}-{seed}-{family}"
        shutil.copytree(folder, keep, dirs_exist_ok=True)
        (keep / "command").write_text(" ".join(str(c) for c in command) + "\n")
        (keep / "output").write_text(done.stdout + done.stderr)
    return "FAIL", f"{how}: exit {done.returncode}: {' / '.join(lines)[:300]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--kinds", default="random,csmith")
    parser.add_argument("--first", type=int, default=1, help="first seed")
    parser.add_argument("--programs", type=int, default=500, help="programs that count, of each kind and family")
    parser.add_argument("--state", type=pathlib.Path, help="results so far, one a line; read first, then appended to")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for what failed")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rocr", default=str(HERE.parent.parent / "target/release/rocr"))
    parser.add_argument("--clang", default="clang-19")
    parser.add_argument("--clang22", default="clang-22")
    args = parser.parse_args()
    families = args.families.split(",")

    counted = {}
    known = set()
    lock = threading.Lock()
    if args.state and args.state.exists():
        for line in args.state.read_text().splitlines():
            kind, seed, family, verdict, _ = line.split("\t", 4)
            known.add((kind, int(seed), family))
            if verdict != "skip":
                counted[kind, family] = counted.get((kind, family), 0) + 1
    failures = 0

    def note(kind, seed, family, verdict, detail):
        nonlocal failures
        with lock:
            if verdict != "skip":
                counted[kind, family] = counted.get((kind, family), 0) + 1
            if verdict == "FAIL":
                failures += 1
                print(f"{kind} {seed} {family} {detail}", flush=True)
            if args.state:
                with args.state.open("a") as f:
                    f.write(f"{kind}\t{seed}\t{family}\t{verdict}\t{detail}\n")

    def one(kind, seed):
        todo = [f for f in families if (kind, seed, f) not in known and counted.get((kind, f), 0) < args.programs]
        if not todo:
            return
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            try:
                source(kind, seed, folder)
                host(kind, seed, folder, args.clang)
            except Skip as e:
                for family in todo:
                    note(kind, seed, family, "skip", str(e))
                return
            for family in todo:
                note(kind, seed, family, *check(kind, seed, family, folder, args))

    for kind in args.kinds.split(","):
        seed = args.first
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            while any(counted.get((kind, f), 0) < args.programs for f in families) and seed < args.first + 4 * args.programs:
                batch = range(seed, seed + 4 * args.jobs)
                for done in [pool.submit(one, kind, s) for s in batch]:
                    done.result()
                seed = batch.stop
    for (kind, family), count in sorted(counted.items()):
        print(f"{kind:8} {family:8} {count} programs")
    print(f"{failures} differ")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
