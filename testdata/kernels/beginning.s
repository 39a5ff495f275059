// What a wave starts with: work-item ids, and zeros in registers and LDS. It stores what it finds there, then leaves other values.
.text
.globl beginning
.p2align 8
.type beginning,@function
beginning:
 s_load_dwordx2 s[4:5], s[0:1], 0x0
 v_lshlrev_b32 v1, 2, v0
 ds_read_b32 v2, v1
 s_waitcnt lgkmcnt(0)
 v_or_b32 v2, v2, v5
 v_or_b32 v2, v2, v7
 v_or_b32 v2, s20, v2
 s_mov_b32 s21, vcc_lo
 v_or_b32 v2, s21, v2
 s_mov_b32 s21, m0
 v_or_b32 v2, s21, v2
 v_add_u32 v2, v0, v2
 global_store_dword v1, v2, s[4:5]
 v_mov_b32 v5, 7
 v_mov_b32 v7, 9
 v_mov_b32 v0, 3
 s_mov_b32 s20, 5
 s_mov_b32 m0, 11
 s_mov_b64 vcc, 13
 ds_write_b32 v1, v5
 s_waitcnt vmcnt(0) lgkmcnt(0)
 s_endpgm
.rodata
.p2align 6
.amdhsa_kernel beginning
 .amdhsa_next_free_vgpr 8
 .amdhsa_next_free_sgpr 24
 .amdhsa_accum_offset 8
 .amdhsa_group_segment_fixed_size 1024
 .amdhsa_user_sgpr_kernarg_segment_ptr 1
 .amdhsa_kernarg_size 8
.end_amdhsa_kernel
.amdgpu_metadata
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: beginning
    .symbol: beginning.kd
    .kernarg_segment_size: 8
    .group_segment_fixed_size: 1024
    .private_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .wavefront_size: 64
    .sgpr_count: 24
    .vgpr_count: 8
    .max_flat_workgroup_size: 256
    .args:
      - {.name: out, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
.end_amdgpu_metadata
