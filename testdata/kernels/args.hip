// What the runtime has to put into the kernarg segment and the registers.
#include "hipmini.h"

// The implicit block as the code object version defines it: 256 bytes of
// hidden arguments for V5 and later, 56 for V4.
#ifndef IMPLICIT_DWORDS
#define IMPLICIT_DWORDS 64
#endif

K void args_hidden(u32 *out) {
  const u32 *implicit = (const u32 *)__builtin_amdgcn_implicitarg_ptr();
  if (gid() == 0)
    for (u32 i = 0; i < IMPLICIT_DWORDS; i++)
      out[i] = implicit[i];
}

// The dispatch packet as the kernel sees it, without the completion signal.
K void args_packet(u32 *out) {
  const u32 *packet = (const u32 *)__builtin_amdgcn_dispatch_ptr();
  if (gid() == 0)
    for (u32 i = 0; i < 14; i++)
      out[i] = packet[i];
}

// Eight values a work-item: its IDs in the group, the group's IDs, sizes.
K void args_ids(u32 *out, u32 nx, u32 ny, u32 nz) {
  u32 dz = __builtin_amdgcn_workgroup_size_z();
  u32 x = BX * DX + TX, y = BY * DY + TY, z = BZ * dz + TZ;
  if (x < nx && y < ny && z < nz) {
    u32 *o = out + 8 * ((z * ny + y) * nx + x);
    o[0] = TX;
    o[1] = TY;
    o[2] = TZ;
    o[3] = BX;
    o[4] = BY;
    o[5] = BZ;
    o[6] = DX | DY << 10 | dz << 20;
    o[7] = GX;
  }
}

struct Inner {
  i16 s;
  u8 b[3];
};
struct Mixed {
  i8 c;
  double d;
  Inner inner;
  const u32 *p;
  f16 h;
  u8 tail;
};

// A struct by value (with a pointer in it), and every small scalar type.
K void args_struct(u64 *out, Mixed m, u32 n) {
  if (gid() >= n)
    return;
  u64 *o = out + 9 * gid();
  o[0] = (u64)(i64)m.c;
  o[1] = __builtin_bit_cast(u64, m.d);
  o[2] = (u64)(i64)m.inner.s;
  o[3] = m.inner.b[0] | m.inner.b[1] << 8 | m.inner.b[2] << 16;
  o[4] = m.p[gid()];
  o[5] = __builtin_bit_cast(u16, m.h);
  o[6] = m.tail;
  o[7] = sizeof(Mixed);
  o[8] = n;
}

K void args_small(u64 *out, i8 a, u8 b, i16 c, u16 d, bool e, f16 f, float g, i64 h, floatx4 v, i32 last) {
  if (gid())
    return;
  out[0] = (u64)(i64)a;
  out[1] = b;
  out[2] = (u64)(i64)c;
  out[3] = d;
  out[4] = e;
  out[5] = __builtin_bit_cast(u16, f);
  out[6] = __builtin_bit_cast(u32, g);
  out[7] = (u64)h;
  float first = v.x, fourth = v.w;
  out[8] = __builtin_bit_cast(u32, first) | (u64)__builtin_bit_cast(u32, fourth) << 32;
  out[9] = (u64)(i64)last;
}
