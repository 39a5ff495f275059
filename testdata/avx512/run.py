#!/usr/bin/env python3
"""Runs a program on an emulated CPU that has AVX-512 (README.md beside this file).

    testdata/avx512/run.py PROGRAM [ARGUMENT...]

Needs Debian's bochs, bochs-term, bochsbios, vgabios, busybox-static, cpio, grub-pc-bin, xorriso, mtools and a kernel.
"""

import argparse
import os
import pathlib
import pty
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent.parent
TAKEN_ALONG = ["testdata", "tests", "docs", "target/release/rocr"]
NAMED_FOLDERS = ["ROCR_ORACLES", "ROCR_CORPUS_SRC"]
BEGIN, END = "== guest begins", "== guest ends with "
# The guest's clock counts instructions. Emulation is slower than this, so that tests which look at the clock have time enough;
# were it much more, output at 115200 baud of the guest's time would take long.
INSTRUCTIONS_PER_SECOND = 200_000_000

INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /run
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm
mount -t tmpfs shm /dev/shm
mount -t tmpfs run /run
ip link set lo up
grep -qw avx512f /proc/cpuinfo || echo "this CPU has no AVX-512"
export PATH=/bin HOME=/run TMPDIR=/run {variables}
cd {folder}
echo "{begin}"
{command}
echo "{end}$?"
sleep 1000000
"""

# Bochs gives a wrong size for the compacted format of XSAVES, at which the kernel would do without AVX.
GRUB = "set timeout=0\nlinux /vmlinuz console=ttyS0,115200 quiet mitigations=off clearcpuid=xsaves,xsavec {kernel_options}\ninitrd /initrd\nboot\n"

BOCHS = """
megs: {megabytes}
cpu: model={cpu}, count=1, ips={ips}, reset_on_triple_fault=0
clock: sync=none, time0=utc
romimage: file=/usr/share/bochs/BIOS-bochs-latest
vgaromimage: file=/usr/share/vgabios/vgabios.bin
display_library: {display}
ata0: enabled=1
ata0-master: type=cdrom, path={image}, status=inserted
boot: cdrom
com1: enabled=1, mode=file, dev={console}
log: {log}
panic: action=fatal
error: action=ignore
info: action=ignore
debug: action=ignore
"""


def libraries(program):
    """The shared libraries that a program loads, its interpreter among them."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    return [pathlib.Path(path) for path in re.findall(r"(/\S+) \(0x", listed)]


def put(root, path):
    """Copies a file or a folder to the same absolute path below `root`."""
    into = root / path.absolute().relative_to("/")
    into.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir():
        shutil.copytree(path, into, symlinks=True, dirs_exist_ok=True)
        return
    shutil.copy(path, into)
    with path.open("rb") as file:
        if file.read(4) == b"\x7fELF" and os.access(path, os.X_OK):
            subprocess.run(["strip", "--strip-debug", into], check=False, stderr=subprocess.DEVNULL)
            for library in libraries(path):
                if not (root / library.relative_to("/")).exists():
                    put(root, library)


def newest_kernel():
    kernels = sorted(pathlib.Path("/boot").glob("vmlinuz-*"), key=lambda path: path.stat().st_mtime)
    if not kernels:
        sys.exit("no kernel in /boot: install linux-image-cloud-amd64, or say --kernel FILE")
    return kernels[-1]


def build_image(folder, args):
    """A CD that boots into the command."""
    root = folder / "root"
    (root / "bin").mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), root / "bin/busybox")
    program = args.program.absolute()
    taken = [program, *args.file, *(args.repository / name for name in TAKEN_ALONG)]
    variables = list(args.env)
    for name in NAMED_FOLDERS:
        if name in os.environ:
            variables.append(f"{name}={os.environ[name]}")
            taken.append(pathlib.Path(os.environ[name]))
    for path in taken:
        if path.exists():
            put(root, path)
    init = root / "init"
    init.write_text(INIT.format(variables=" ".join(map(shlex.quote, variables)), folder=shlex.quote(str(args.repository)),
                                begin=BEGIN, end=END, command=shlex.join([str(program), *args.arguments])))
    init.chmod(0o755)
    disc = folder / "disc"
    (disc / "boot/grub").mkdir(parents=True)
    shutil.copy(args.kernel or newest_kernel(), disc / "vmlinuz")
    (disc / "boot/grub/grub.cfg").write_text(GRUB.format(kernel_options=args.kernel_options))
    with (disc / "initrd").open("wb") as out:
        files = subprocess.run(["find", ".", "-print0"], cwd=root, capture_output=True, check=True).stdout
        subprocess.run(["cpio", "-0", "-o", "-H", "newc", "-R", "0:0", "--quiet"], cwd=root, input=files, stdout=out, check=True)
    shutil.rmtree(root)
    image = folder / "image.iso"
    subprocess.run(["grub-mkrescue", "-o", image, disc], check=True, capture_output=True)
    shutil.rmtree(disc)
    return image


def drain(screen, shown):
    try:
        while data := os.read(screen, 4096):
            shown[:] = [*shown[-8:], data]
    except OSError:
        pass  # the other end is closed


def run(folder, image, args):
    """Boots the image, prints what the command prints, and returns its status; 125 if it came to no end."""
    console, log, setup = folder / "console", folder / "log", folder / "bochsrc"
    console.touch()
    setup.write_text(BOCHS.format(image=image, console=console, log=log, megabytes=args.megabytes, cpu=args.cpu,
                                  ips=INSTRUCTIONS_PER_SECOND, display=args.display))
    # its display is a terminal, which nobody looks at
    screen, terminal = pty.openpty()
    command = [args.bochs, "-q", "-f", setup]
    if "-rc " in subprocess.run([args.bochs, "--help"], capture_output=True, text=True).stderr:
        (folder / "start").write_text("continue\n")  # this build has a debugger, which waits for a command
        command += ["-rc", folder / "start"]
    bochs = subprocess.Popen(command, cwd=folder, stdin=terminal, stdout=terminal, stderr=terminal,
                             env={**os.environ, "TERM": "vt100"})
    os.close(terminal)
    shown = []
    threading.Thread(target=drain, args=(screen, shown), daemon=True).start()
    begun = args.verbose
    status = None
    rest = b""
    try:
        with console.open("rb") as lines:
            while True:
                ended = bochs.poll() is not None
                rest += lines.read()
                *whole, rest = rest.split(b"\n")
                for line in whole:
                    text = line.decode(errors="replace").rstrip("\r")
                    if END in text:
                        status = int(text.split(END)[1])
                    if "Kernel panic" in text:
                        bochs.kill()
                    if begun:
                        print(text, flush=True)
                    begun = begun or text == BEGIN
                if ended or status is not None:
                    break
                time.sleep(0.5)
    finally:
        bochs.kill()
        bochs.wait()
    if status is None:
        print(b"".join(shown).decode(errors="replace")[-2000:], file=sys.stderr)
        print(log.read_text(errors="replace")[-2000:] if log.exists() else "no log", file=sys.stderr)
        return 125
    return status


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bochs", default="bochs", help="the emulator")
    parser.add_argument("--display", default="term", help="the emulator's display library; `nogui` where it has that")
    parser.add_argument("--cpu", default="corei7_skylake_x", help="a model of `bochs --help cpu`")
    parser.add_argument("--kernel", type=pathlib.Path, help="a kernel's bzImage; the newest in /boot by default")
    parser.add_argument("--kernel-options", default="")
    parser.add_argument("--megabytes", type=int, default=2048, help="memory of the guest")
    parser.add_argument("--file", type=pathlib.Path, action="append", default=[], help="a file or folder to take along")
    parser.add_argument("--env", action="append", default=[], help="NAME=VALUE for the program")
    parser.add_argument("--repository", type=pathlib.Path, default=REPOSITORY, help="where the program was built")
    parser.add_argument("--verbose", action="store_true", help="print the guest's console from its boot on")
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        return run(folder, build_image(folder, args), args)


if __name__ == "__main__":
    sys.exit(main())
