#!/usr/bin/env python3
"""Triton kernels compiled for amdgcn, run by rocr on the embedded GPU, compared with numpy (README.md beside this file).

    python -m venv /some/folder && /some/folder/bin/pip install triton==3.9.0 numpy
    /some/folder/bin/python testdata/triton/run.py [--targets gfx90a,gfx942] [--kernels softmax] [--keep DIR]
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import kernels

HERE = pathlib.Path(__file__).resolve().parent
WAVE = {"gfx90a": 64, "gfx942": 64, "gfx950": 64, "gfx1100": 32, "gfx1201": 32, "gfx1250": 32}

# What a family's matrix instructions know as float8: bits of the exponent, of the fraction, whether of the kind "FNUZ"
FLOAT8 = {"fp8e5": (5, 2, False), "fp8e4nv": (4, 3, False), "fp8e4b8": (4, 3, True), "fp8e5b16": (5, 2, True)}
FLOAT8_OF = {"gfx942": ["fp8e4b8", "fp8e5b16"], "gfx950": ["fp8e4nv", "fp8e5"], "gfx1201": ["fp8e4nv", "fp8e5"],
             "gfx1250": ["fp8e4nv", "fp8e5"]}


def float8_value(bits, kind):
    """The f32 of a float8's bits."""
    exponent_bits, fraction_bits, fnuz = FLOAT8[kind]
    bits = bits.astype(np.int64)
    sign = np.where(bits >> 7, -1.0, 1.0)
    exponent = bits >> fraction_bits & (1 << exponent_bits) - 1
    fraction = (bits & (1 << fraction_bits) - 1) / (1 << fraction_bits)
    bias = (1 << exponent_bits - 1) - (0 if fnuz else 1)
    value = np.where(exponent == 0, np.ldexp(fraction, 1 - bias), np.ldexp(1 + fraction, (exponent - bias).astype(int)))
    return (sign * value).astype(np.float32)


def bf16_bits(values):
    """The nearest bfloat16, ties to even."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def bf16_value(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


class Tensor:
    """Numbers in a type of Triton's: the bytes that the kernel reads and the f64 that they stand for."""

    def __init__(self, rng, shape, kind, spread=1.0):
        self.kind = kind
        values = rng.standard_normal(shape) * spread
        if kind == "fp32":
            self.bits = values.astype(np.float32)
            self.value = self.bits.astype(np.float64)
        elif kind == "fp16":
            self.bits = values.astype(np.float16)
            self.value = self.bits.astype(np.float64)
        elif kind == "bf16":
            self.bits = bf16_bits(values)
            self.value = bf16_value(self.bits).astype(np.float64)
        else:
            # random bits of small numbers: no NaN, no infinity, no negative zero
            exponent_bits, fraction_bits, _ = FLOAT8[kind]
            middle = 1 << exponent_bits - 1
            exponent = rng.integers(middle - 4, middle + 1, shape)
            fraction = rng.integers(0, 1 << fraction_bits, shape)
            sign = rng.integers(0, 2, shape)
            self.bits = (sign << 7 | exponent << fraction_bits | fraction).astype(np.uint8)
            self.value = float8_value(self.bits, kind).astype(np.float64)


class Case:
    """A launch: the kernel, its types, constants and arguments in order, the grid, and what must come out."""

    def __init__(self, name, kernel, signature, constants, arguments, grid, want, tolerance, out="fp32"):
        self.name, self.kernel, self.signature, self.constants = name, kernel, signature, constants
        self.arguments, self.grid, self.want, self.tolerance, self.out = arguments, grid, want, tolerance, out


def cases(target):
    rng = np.random.default_rng(2024)
    n = 5000
    x, y = Tensor(rng, n, "fp32"), Tensor(rng, n, "fp32")
    yield Case("add", kernels.add, ["*fp32", "*fp32", "*fp32", "i32"], {"BLOCK": 1024}, [x, y, None, n], (-(-n // 1024), 1),
               (x.value + y.value).astype(np.float32), 0)
    for kind, tolerance in [("fp32", 2e-6), ("fp16", 1e-3)]:
        rows, columns = 24, 700
        x = Tensor(rng, (rows, columns), kind, 2.0)
        powers = np.exp(x.value - x.value.max(1, keepdims=True))
        yield Case(f"softmax_{kind}", kernels.softmax, ["*" + kind, "*fp32", "i32"], {"BLOCK": 1024}, [x, None, columns],
                   (rows, 1), powers / powers.sum(1, keepdims=True), tolerance if kind == "fp32" else 2e-3)
    for kind in ["fp32", "fp16"]:
        rows, columns, epsilon = 20, 900, 1e-5
        x = Tensor(rng, (rows, columns), kind)
        weight, bias = Tensor(rng, columns, "fp32"), Tensor(rng, columns, "fp32")
        centred = x.value - x.value.mean(1, keepdims=True)
        want = centred / np.sqrt((centred**2).mean(1, keepdims=True) + epsilon) * weight.value + bias.value
        yield Case(f"layer_norm_{kind}", kernels.layer_norm, ["*" + kind, "*fp32", "*fp32", "*fp32", "i32", "fp32"],
                   {"BLOCK": 1024}, [x, weight, bias, None, columns, epsilon], (rows, 1), want, 2e-5)
    for kind in ["fp16", "bf16", "fp32", *FLOAT8_OF.get(target, [])]:
        for m, n, k in [(128, 128, 128), (100, 70, 90)]:
            a, b = Tensor(rng, (m, k), kind), Tensor(rng, (k, n), kind)
            want = a.value @ b.value
            bound = (np.abs(a.value) @ np.abs(b.value)).max()
            # Triton multiplies f32 as xf32 on gfx942, which has 10 bits of fraction
            unit = 2.0**-10 if (target, kind) == ("gfx942", "fp32") else 1e-6
            yield Case(f"matmul_{kind}_{m}", kernels.matmul, ["*" + kind, "*" + kind, "*fp32", "i32", "i32", "i32"],
                       {"BM": 64, "BN": 64, "BK": 64 if kind.startswith("fp8") else 32}, [a, b, None, m, n, k],
                       (-(-m // 64), -(-n // 64)), want, unit * bound)
    for kind, unit in [("fp16", 2.0**-11), ("bf16", 2.0**-8)]:
        length, width = 150, 64
        q, k, v = (Tensor(rng, (length, width), kind) for _ in range(3))
        score = q.value @ k.value.T * width**-0.5
        power = np.exp(score - score.max(1, keepdims=True))
        want = power / power.sum(1, keepdims=True) @ v.value
        # each probability is rounded to the kind before the second product
        yield Case(f"attention_{kind}", kernels.attention, ["*" + kind] * 3 + ["*fp32", "i32", "fp32"],
                   {"D": width, "BM": 64, "BN": 32}, [q, k, v, None, length, width**-0.5], (-(-length // 64), 1), want,
                   unit * np.abs(v.value).max())


def build(case, target, folder):
    """The code object, the entry's name and the work-items of a workgroup."""
    names = case.kernel.arg_names
    signature = dict(zip(names, case.signature))
    signature |= {name: "constexpr" for name in case.constants}
    constants = {(names.index(name),): value for name, value in case.constants.items()}
    attributes = {(at,): [["tt.divisibility", 16]] for at, kind in enumerate(case.signature) if kind.startswith("*")}
    source = ASTSource(case.kernel, signature, constants, attributes)
    done = triton.compile(source, target=GPUTarget("hip", target, WAVE[target]), options={"num_warps": 4})
    path = folder / f"{case.name}-{target}.hsaco"
    path.write_bytes(done.asm["hsaco"])
    return path, done.metadata.name, 4 * WAVE[target], done.metadata.shared


def run(case, target, folder, rocr):
    """None, or what went wrong."""
    try:
        path, entry, block, shared = build(case, target, folder)
    except Exception as error:  # the compiler has many ways to say no
        return f"not compiled: {str(error).strip().splitlines()[-1][:120]}"
    command = [rocr, "launch", path, entry, "--grid", f"{case.grid[0] * block},{case.grid[1]}",
               "--block", str(block), "--timeout", "120s"]
    if shared:
        command += ["--dyn-lds", str(shared)]
    for at, argument in enumerate(case.arguments):
        if argument is None:
            command += ["--arg", f"f32[{case.want.size}]:poison", "--out", f"{at}={folder / 'out.npy'}"]
        elif isinstance(argument, Tensor):
            file = folder / f"in{at}.bin"
            file.write_bytes(argument.bits.tobytes())
            command += ["--arg", f"u8:@{file}"]
        else:
            command += ["--arg", f"{'i32' if isinstance(argument, int) else 'f32'}:{argument!r}"]
    # Triton's own two pointers at the end, for scratch memory that these kernels do not ask for
    command += ["--arg", "null", "--arg", "null"]
    (folder / "command").write_text(" ".join(str(word) for word in command) + "\n")
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        return f"exit {done.returncode}: {(done.stderr or done.stdout).strip()[-400:]}"
    got = np.load(folder / "out.npy").reshape(case.want.shape)
    error = np.abs(got.astype(np.float64) - case.want).max()
    if not error <= case.tolerance:
        return f"largest error {error:.3g}, allowed {case.tolerance:.3g}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", default=",".join(WAVE))
    parser.add_argument("--kernels", default="", help="the beginning of the cases' names")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for objects, inputs and commands")
    parser.add_argument("--rocr", default=str(HERE.parent.parent / "target/release/rocr"))
    args = parser.parse_args()
    wrong = 0
    for target in args.targets.split(","):
        good = 0
        for case in cases(target):
            if not case.name.startswith(args.kernels):
                continue
            with tempfile.TemporaryDirectory() as name:
                folder = args.keep / f"{case.name}-{target}" if args.keep else pathlib.Path(name)
                folder.mkdir(parents=True, exist_ok=True)
                problem = run(case, target, folder, args.rocr)
            if problem:
                wrong += 1
                print(f"{target} {case.name}: {problem}", flush=True)
            else:
                good += 1
        print(f"{target}: {good} right", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
