// Data that refers to symbols of other objects, and a kernel, without metadata.
  .text
  .globl user
  .p2align 8
  .type user,@function
user:
  s_endpgm
.Lend:
  .size user, .Lend-user
  .rodata
  .p2align 6
  .amdhsa_kernel user
    .amdhsa_next_free_vgpr 1
    .amdhsa_next_free_sgpr 1
    .amdhsa_accum_offset 4
  .end_amdhsa_kernel

  .data
  .globl table
  .type table,@object
  .size table, 56
  .p2align 3
table:
  .quad given          // R_AMDGPU_ABS64, defined by provider.s or from outside
  .quad given + 16     // the same with an addend
  .quad given - 8      // a negative addend
  .quad table + 8      // R_AMDGPU_ABS64 to a symbol of this object (preemptible)
  .quad .Lhere         // R_AMDGPU_RELATIVE64
  .quad maybe          // R_AMDGPU_ABS64 to a weak undefined symbol
.Lhere:
  .quad 0x1122334455667788
  .weak maybe
  // undefined and not used by any relocation: must not matter
  .globl unused
