#!/bin/bash
# Fetches real files with code objects into DIR and checks that rocr lists what they are known to hold.
#
#   testdata/real.sh DIR [ROCR]
#
# Needs pip, python3, and for librocrand1 apt-get and dpkg-deb; what cannot be fetched is skipped by name. About 220 MB.
# Nothing of it is committed.
set -u
dir=$1
rocr=${2:-target/release/rocr}
rocr=$(realpath "$rocr")
mkdir -p "$dir" && cd "$dir" || exit 1

# name, different code objects, kernels in them
check() {
  local name=$1 objects=$2 kernels=$3
  if [ ! -d "$name" ]; then echo "skipped  $name"; return; fi
  python3 - "$rocr" "$name" "$objects" "$kernels" <<'P'
import collections, csv, hashlib, json, pathlib, subprocess, sys, tempfile
csv.field_size_limit(1 << 30)
rocr, name, want_objects, want_kernels = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
objects, bad = {}, 0
for path in sorted(pathlib.Path(name).rglob("*")):
    if not path.is_file() or path.is_symlink() or path.stat().st_size < 256:
        continue
    head = path.open("rb").read(8)
    if not (head[:4] == b"\x7fELF" or head[:2] == b"MZ" or head[:8] == b"!<arch>\n"):
        continue
    def run(*words):
        return subprocess.run([rocr, "load", "--inspect", *words, path], capture_output=True, text=True)
    with tempfile.TemporaryDirectory() as out:
        listed = run("--list", "--json", "--extract", out)
        report = json.loads(listed.stdout)
        if listed.returncode and report["error"]["code"] in ("wrong_machine", "no_device_code"):
            continue
        # every kernel's descriptor and metadata are read for this one
        whole = run("--format", "csv")
        if listed.returncode or whole.returncode or whole.stderr:
            bad += 1
            print(path, whole.returncode, whole.stderr[:300])
        kernels = collections.Counter(int(row["entry"]) for row in csv.DictReader(whole.stdout.splitlines()))
        files = iter(report["extracted"])
        for entry in report["entries"]:
            if entry["size_bytes"] and entry["kind"] != "empty":
                content = pathlib.Path(out, next(files)).read_bytes()
                if entry["kind"] == "code_object":
                    objects[hashlib.sha1(content).hexdigest()] = kernels[entry["index"]]
kernels = sum(objects.values())
good = len(objects) == want_objects and kernels == want_kernels and not bad
print("good    " if good else "DIFFERS ", name, f"{len(objects)} code objects, {kernels} kernels,",
      f"expected {want_objects} and {want_kernels}; {bad} problems")
sys.exit(not good)
P
}
wheel() {
  local name=${1%%==*}
  [ -d "$name" ] && return
  pip download -q --no-deps -d wheels "${@:2}" "$1" && mkdir -p "$name" \
    && python3 -m zipfile -e wheels/"${name//-/_}"-*.whl "$name"
}
foreign=(--only-binary :all: --python-version 3.13)
wheel bitsandbytes==0.50.2 "${foreign[@]}"
wheel cupy-rocm-7-0==14.2.0 "${foreign[@]}"
wheel cyllama-rocm==0.2.18 "${foreign[@]}"
wheel jax-rocm7-plugin==0.10.2 "${foreign[@]}"
wheel gafime-rocm==0.4.7 "${foreign[@]}"
wheel amd-aiter==0.1.7.post2.dev18 "${foreign[@]}"
if [ ! -d librocrand1 ] && apt-get download -q librocrand1 2>/dev/null; then
  mkdir -p librocrand1 && dpkg-deb -x librocrand1_*.deb librocrand1
fi
status=0
check bitsandbytes 218 19075 || status=1
check cupy-rocm-7-0 27 20304 || status=1
check cyllama-rocm 390 19815 || status=1
check jax-rocm7-plugin 108 567 || status=1
check gafime-rocm 13 247 || status=1
check amd-aiter 2579 2579 || status=1
check librocrand1 7 560 || status=1
exit $status
