// One kernel for each class of instruction: 32 of them in a loop, with a chosen EXEC. How fast a class is follows from the
// time, the waves and the rounds. Arguments: a buffer of 4 KiB, EXEC, rounds.

#ifndef GFX11
#define ADD v_add_u32_e32
#else
#define ADD v_add_nc_u32_e32
#endif

// EXEC as the kernel's second argument says
#ifndef GFX11
#define MOV_EXEC s_mov_b64 exec, s[6:7]
#else
#define MOV_EXEC s_mov_b32 exec_lo, s6
#define vcc vcc_lo
#endif

.macro begin name
  .text
  .globl \name
  .p2align 8
  .type \name,@function
\name:
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  s_load_dword s8, s[0:1], 0x10
  v_lshlrev_b32_e32 v1, 2, v0
  v_mov_b32_e32 v2, 1.0
  v_mov_b32_e32 v3, 0.5
  v_mov_b32_e32 v4, 0.5
  v_mov_b32_e32 v5, 2.0
  v_cvt_f64_f32_e32 v[6:7], v2
  v_cvt_f64_f32_e32 v[8:9], v3
  v_cvt_f64_f32_e32 v[10:11], v4
  v_cmp_lt_u32_e32 vcc, v0, v1
  s_mov_b32 s9, 0
  s_mov_b32 s10, 3
  s_waitcnt lgkmcnt(0)
  MOV_EXEC
.Lloop_\name:
.endm

.macro end name
  s_add_i32 s8, s8, -1
  s_cmp_lg_u32 s8, 0
  s_cbranch_scc1 .Lloop_\name
  s_endpgm
.Lend_\name:
  .size \name, .Lend_\name-\name
  .rodata
  .p2align 6
  .amdhsa_kernel \name
    .amdhsa_user_sgpr_kernarg_segment_ptr 1
    .amdhsa_next_free_vgpr 16
    .amdhsa_next_free_sgpr 16
    .amdhsa_group_segment_fixed_size 1024
    .amdhsa_kernarg_size 20
#ifndef GFX11
    .amdhsa_accum_offset 16
#else
    .amdhsa_wavefront_size32 1
#endif
  .end_amdhsa_kernel
.endm

.macro class name, op:vararg
  begin \name
  .rept 32
  \op
  .endr
  end \name
.endm

  class fma_f32, v_fma_f32 v2, v2, v3, v4
  class add_u32, ADD v2, v2, v3
  class mul_lo_u32, v_mul_lo_u32 v2, v2, v3
  class lshlrev_b64, v_lshlrev_b64 v[12:13], 1, v[12:13]
  class fma_f64, v_fma_f64 v[6:7], v[6:7], v[8:9], v[10:11]
  class pk_fma_f16, v_pk_fma_f16 v2, v2, v3, v4
  class cmp_lt_u32, v_cmp_lt_u32_e32 vcc, v2, v3
  class cndmask_b32, v_cndmask_b32_e32 v2, v2, v3, vcc
  class cvt_f32_u32, v_cvt_f32_u32_e32 v2, v3
  class rcp_f32, v_rcp_f32_e32 v2, v5
  class mov_dpp, v_mov_b32_dpp v2, v3 row_shr:1 row_mask:0xf bank_mask:0xf
  class bpermute_b32, ds_bpermute_b32 v2, v1, v3
  class lds_read, ds_read_b32 v2, v1
  class lds_write, ds_write_b32 v1, v2
  class global_load, global_load_dword v2, v1, s[4:5]
  class global_store, global_store_dword v1, v2, s[4:5]
  class scalar_add, s_add_u32 s9, s9, s10
  class scalar_load, s_load_dword s9, s[4:5], 0x0

// the metadata of one kernel, on the one line that a macro can be
#define KERNEL(kernel) - {.name: kernel, .symbol: kernel.kd, .kernarg_segment_size: 20, .kernarg_segment_align: 8, \
    .group_segment_fixed_size: 1024, .private_segment_fixed_size: 0, .wavefront_size: WAVE, .sgpr_count: 16, \
    .vgpr_count: 16, .max_flat_workgroup_size: 256, .args: [ \
    {.name: buffer, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}, \
    {.name: exec, .offset: 8, .size: 8, .value_kind: by_value}, \
    {.name: rounds, .offset: 16, .size: 4, .value_kind: by_value}]}

.amdgpu_metadata
amdhsa.version: [1, 2]
amdhsa.kernels:
  KERNEL(fma_f32)
  KERNEL(add_u32)
  KERNEL(mul_lo_u32)
  KERNEL(lshlrev_b64)
  KERNEL(fma_f64)
  KERNEL(pk_fma_f16)
  KERNEL(cmp_lt_u32)
  KERNEL(cndmask_b32)
  KERNEL(cvt_f32_u32)
  KERNEL(rcp_f32)
  KERNEL(mov_dpp)
  KERNEL(bpermute_b32)
  KERNEL(lds_read)
  KERNEL(lds_write)
  KERNEL(global_load)
  KERNEL(global_store)
  KERNEL(scalar_add)
  KERNEL(scalar_load)
.end_amdgpu_metadata
