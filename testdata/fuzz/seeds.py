#!/usr/bin/env python3
"""Makes the first inputs of every fuzz target from the objects in ../cases and ../loader. Finds are added by hand."""
import hashlib, struct, zlib
from pathlib import Path

HERE = Path(__file__).parent
OBJECT = (HERE / "../cases/v5_gfx90a.hsaco").read_bytes()
DEBUG = HERE / "../loader/v4_gfx90a_g.hsaco"
V2 = HERE / "../loader/v2_gfx906.hsaco"


def write(target, name, data):
    (HERE / target).mkdir(exist_ok=True)
    (HERE / target / name).write_bytes(data)


def sections(path):
    data = Path(path).read_bytes()
    offset, = struct.unpack_from("<Q", data, 40)
    count, names = struct.unpack_from("<HH", data, 60)
    heads = [struct.unpack_from("<IIQQQQ", data, offset + 64 * i) for i in range(count)]
    table = data[heads[names][4] :]
    return {table[h[0] : table.index(0, h[0])].decode(): data[h[4] : h[4] + h[5]] for h in heads if h[1] != 8}


def note(data, name):
    at = data.index(struct.pack("<I", len(name))[:4], 0)
    while data[at + 12 : at + 12 + len(name)] != name:
        at = data.index(struct.pack("<I", len(name)), at + 1)
    size, = struct.unpack_from("<I", data, at + 4)
    start = at + 12 + (len(name) + 3) // 4 * 4
    return data[start : start + size]


def bundle(entries):
    table, content = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries)), b""
    head = 32 + sum(24 + len(i) for i, _ in entries)
    for name, payload in entries:
        table += struct.pack("<QQQ", head + len(content), len(payload), len(name)) + name
        content += payload
    return table + content


def ccob(version, content):
    stream, digest = zlib.compress(content, 9), hashlib.md5(content).digest()[:8]
    sizes = {1: struct.pack("<I", len(content)), 2: struct.pack("<II", 24 + len(stream), len(content)),
             3: struct.pack("<QQ", 32 + len(stream), len(content))}[version]
    return b"CCOB" + struct.pack("<HH", version, 0) + sizes + digest + stream


def offload_binary(version, image):
    wide = version > 1
    head, text = (40 if version == 3 else 32), b"triple\0amdgcn-amd-amdhsa\0arch\0gfx90a\0"
    table = head + 40
    strings = table + 2 * (24 if wide else 16)
    at = strings + len(text)
    data = b"\x10\xff\x10\xad" + struct.pack("<IQQQ", version, at + len(image), head, 1 if wide else 40)
    data += b"\0" * (head - 32) + struct.pack("<HHIQQQQ", 1, 4, 0, table, 2, at, len(image))
    for key, value, size in ((0, 7, 17), (25, 30, 6)):
        data += struct.pack("<QQ", strings + key, strings + value) + (struct.pack("<Q", size) if wide else b"")
    return data + text + image


def member(name, data):
    return f"{name:<16}{'0':<32}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)


ENTRIES = [(b"host-x86_64-unknown-linux-gnu-", b""), (b"hipv4-amdgcn-amd-amdhsa--gfx90a", OBJECT)]
BUNDLE = bundle(ENTRIES)
write("container", "bundle", BUNDLE)
for version in 1, 2, 3:
    write("container", f"ccob_v{version}", ccob(version, BUNDLE))
    write("container", f"offload_binary_v{version}", offload_binary(version, OBJECT))
write("container", "archive", b"!<arch>\n" + member("//", b"a_long_name_of_a_member.o/\n") + member("/0", BUNDLE)
      + member("#1/8", b"bsd.o\0\0\0" + ccob(3, BUNDLE)))
pe = bytearray(b"MZ" + b"\0" * 58 + struct.pack("<I", 64) + b"PE\0\0" + struct.pack("<HHIIIHH", 0x8664, 1, 0, 0, 0, 0, 0x22))
pe += b".hip_fat" + struct.pack("<IIIIIIHHI", len(BUNDLE), 4096, len(BUNDLE), 128, 0, 0, 0, 0, 0x40000040)
write("container", "pe", bytes(pe.ljust(128, b"\0")) + BUNDLE)
write("metadata", "msgpack", note(OBJECT, b"AMDGPU\0"))
yaml = sections(V2)[".note"]
write("metadata", "yaml", yaml[yaml.index(b"---") :].rstrip(b"\0"))
write("descriptor", "kernel_descriptor", sections(HERE / "../cases/v5_gfx90a.hsaco")[".rodata"][:64])
write("descriptor", "amd_kernel_code", sections(V2)[".text"][:256])
debug = sections(DEBUG)
parts = [debug.get(name, b"") for name in (".debug_abbrev", ".debug_info", ".debug_line", ".debug_str", ".debug_line_str",
                                           ".debug_str_offsets", ".debug_addr", ".debug_rnglists")]
total = sum(map(len, parts))
shares, content = b"", b""
for part in parts:
    share = -(-255 * len(part) // total) if part else 0
    shares += bytes([min(share, 255)])
    content += part.ljust(share * total // 255, b"\0")
write("dwarf", "v4_gfx90a", shares + content)
