#!/usr/bin/env python3
"""Makes `objects/` and `expected/` (README.md beside this file): for each family the first programs of each kind whose objects are small.

    testdata/random/fixtures.py --clang22 "python3 -m ziglang clang"

The expected values are the host's. Needs what run.py needs, and llvm-strip-19.
"""

import argparse
import pathlib
import shutil
import tempfile
import textwrap

from run import FAMILIES, HERE, Skip, build, host, quiet, source

PROGRAMS = 10
LIMIT = 20 << 10  # bytes of an object


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clang", default="clang-19")
    parser.add_argument("--clang22", default="clang-22")
    args = parser.parse_args()
    for name in ("objects", "expected"):
        shutil.rmtree(HERE / name, ignore_errors=True)
    (HERE / "expected").mkdir()
    for family in FAMILIES:
        (HERE / "objects" / family).mkdir(parents=True)
    for kind in ("random", "csmith"):
        missing = {family: PROGRAMS for family in FAMILIES}
        seed = 0
        while missing:
            seed += 1
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                try:
                    source(kind, seed, folder)
                    host(kind, seed, folder, args.clang)
                except Skip:
                    continue
                taken = []
                for family in list(missing):
                    try:
                        path = build(kind, seed, family, folder, args)[0]
                    except Skip:
                        continue
                    quiet(["llvm-strip-19", "-K", "program", "-K", "program.kd", path])
                    if path.stat().st_size > LIMIT:
                        continue
                    shutil.copyfile(path, HERE / "objects" / family / f"{kind}-{seed}.hsaco")
                    taken.append(family)
                    missing[family] -= 1
                    if not missing[family]:
                        del missing[family]
                if taken:
                    for part in ("in", "mem", "out"):
                        if (folder / part).exists():
                            shutil.copyfile(folder / part, HERE / "expected" / f"{kind}-{seed}.{part}")
                    print(kind, seed, *taken, flush=True)
    list_programs()


def list_programs():
    """The names of the committed programs at the end of the README."""
    names = {path.stem for path in (HERE / "expected").iterdir()}
    kinds = [sorted((name for name in names if name.startswith(kind)), key=lambda name: int(name.split("-")[1]))
             for kind in ("random", "csmith")]
    readme = HERE / "README.md"
    text = readme.read_text().split("## Programs\n")[0]
    lines = textwrap.wrap(", ".join(kinds[0] + kinds[1]) + ".", 120)
    readme.write_text(text + "## Programs\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
