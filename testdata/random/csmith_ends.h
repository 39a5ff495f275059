// The two ends of a program of csmith: one work-item runs it, as its globals are its own.
#undef main
#undef printf
#ifdef __AMDGCN__
KERNEL program(u32 GLOBAL *out) {
  if (__builtin_amdgcn_workitem_id_x() == 0) {
    csmith_main();
    out[0] = checksum;
  }
}
#else
#include <stdio.h>
int main(int argc, char **argv) {
  csmith_main();
  FILE *f = fopen(argv[1], "wb");
  if (!f || fwrite(&checksum, 4, 1, f) != 1) return 1;
  return fclose(f);
}
#endif
