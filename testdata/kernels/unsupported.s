// Instructions that an emulated compute unit decodes but does not execute,
// and a word that is no instruction. One kernel each; `out` is stored first,
// so that a run shows how far it came.
//
// Assembled once a target with -DGFX90A, -DGFX942 or -DGFX11, and -DWAVE=32|64.

#if defined(GFX11)
#define STORE global_store_b32
#define LOADX2 s_load_b64
#define IMAGE image_load v[2:5], v[2:3], s[4:11] dmask:0xf dim:SQ_RSRC_IMG_2D
#define WAIT s_waitcnt lgkmcnt(0)
#else
#define STORE global_store_dword
#define LOADX2 s_load_dwordx2
#define IMAGE image_load v[2:5], v[2:3], s[4:11] dmask:0xf unorm
#define WAIT s_waitcnt lgkmcnt(0)
#endif

.macro BEGIN name
.text
.p2align 8
.globl \name
.type \name,@function
\name:
  LOADX2 s[2:3], s[0:1], 0x0
  v_mov_b32 v1, 1
  v_mov_b32 v0, 0
  WAIT
  STORE v0, v1, s[2:3]
  s_waitcnt vmcnt(0)
.endm

.macro FINISH name
  v_mov_b32 v1, 2
  STORE v0, v1, s[2:3]
  s_endpgm
.L\name\()_end:
.size \name, .L\name\()_end-\name
.rodata
.p2align 6
.amdhsa_kernel \name
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_kernarg_size 8
  .amdhsa_next_free_vgpr 8
  .amdhsa_next_free_sgpr 16
  .amdhsa_system_sgpr_workgroup_id_x 1
  .amdhsa_system_vgpr_workitem_id 0
#if defined(GFX11)
#if WAVE == 32
  .amdhsa_wavefront_size32 1
#else
  .amdhsa_wavefront_size32 0
#endif
#else
  .amdhsa_accum_offset 8
#endif
.end_amdhsa_kernel
.endm

// Global wave sync: a resource that only a whole device has.
BEGIN unsupported_gws
  s_mov_b32 m0, 0
  v_mov_b32 v2, 1
  ds_gws_init v2 offset:4 gds
FINISH unsupported_gws

#if !defined(GFX942)
// Image memory; gfx942 has no such instruction.
BEGIN unsupported_image
  IMAGE
FINISH unsupported_image
#endif

// Opcode 0xff of SOP1 is assigned on no target.
BEGIN illegal_sop1
  .long 0xbe80ff00
FINISH illegal_sop1

.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: unsupported_gws
    .symbol: unsupported_gws.kd
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: WAVE
    .sgpr_count: 16
    .vgpr_count: 8
    .max_flat_workgroup_size: 256
    .args:
      - {.name: out, .size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}
#if !defined(GFX942)
  - .name: unsupported_image
    .symbol: unsupported_image.kd
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: WAVE
    .sgpr_count: 16
    .vgpr_count: 8
    .max_flat_workgroup_size: 256
    .args:
      - {.name: out, .size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}
#endif
  - .name: illegal_sop1
    .symbol: illegal_sop1.kd
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: WAVE
    .sgpr_count: 16
    .vgpr_count: 8
    .max_flat_workgroup_size: 256
    .args:
      - {.name: out, .size: 8, .offset: 0, .value_kind: global_buffer, .address_space: global}
...
.end_amdgpu_metadata
