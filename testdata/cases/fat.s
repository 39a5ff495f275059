# A host shared object as HIP's driver makes it: two bundles, and wrappers whose pointers only relocations hold.
  .section .hip_fatbin,"a",@progbits
  .p2align 12
bundle0:
  .incbin "bundle0.bin"
  .p2align 12
bundle1:
  .incbin "bundle1.bin"
  .section .hipFatBinSegment,"aw",@progbits
  .p2align 3
  .long 0x48495046, 1
  .quad bundle0, 0
  .long 0x48495046, 1
  .quad bundle1, 0
# and a code object in a section that no name marks
  .section .rodata,"a",@progbits
  .ascii "not the code object, but __CLANG_OFFLOAD_BUNDLE__ and CCOB"
  .p2align 8
  .incbin "v5_gfx90a.hsaco"
