// Copy and fill by work-items that stride over the bytes. `items` is the number of work-items: hidden arguments are not
// used, so that a segment has nothing else than these.
#define ITEM ((ulong)__builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x())

__attribute__((reqd_work_group_size(256, 1, 1)))
kernel void rocr_copy(global uchar *to, global const uchar *from, ulong bytes, ulong items) {
  ulong done = 0;
  if ((((ulong)to | (ulong)from) & 15) == 0) {
    ulong cells = bytes / 16;
    for (ulong i = ITEM; i < cells; i += items)
      ((global uint4 *)to)[i] = ((global const uint4 *)from)[i];
    done = cells * 16;
  }
  for (ulong i = done + ITEM; i < bytes; i += items)
    to[i] = from[i];
}

// `pattern` repeats from the first byte on; `to` is aligned to 4.
__attribute__((reqd_work_group_size(256, 1, 1)))
kernel void rocr_fill(global uchar *to, uint pattern, ulong bytes, ulong items) {
  ulong words = bytes / 4;
  for (ulong i = ITEM; i < words; i += items)
    ((global uint *)to)[i] = pattern;
  for (ulong i = words * 4 + ITEM; i < bytes; i += items)
    to[i] = (uchar)(pattern >> (8 * (i & 3)));
}
