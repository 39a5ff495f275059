// OpenCL's view of the geometry, partial workgroups and global offset
// included: ten values a work-item, at its place in the grid.
kernel void geometry(global uint *out) {
  size_t x = get_global_id(0) - get_global_offset(0);
  size_t y = get_global_id(1) - get_global_offset(1);
  size_t z = get_global_id(2) - get_global_offset(2);
  size_t i = (z * get_global_size(1) + y) * get_global_size(0) + x;
  global uint *o = out + 10 * i;
  o[0] = get_global_id(0) | get_global_id(1) << 10 | get_global_id(2) << 20;
  o[1] = get_local_id(0) | get_local_id(1) << 10 | get_local_id(2) << 20;
  o[2] = get_group_id(0) | get_group_id(1) << 10 | get_group_id(2) << 20;
  o[3] = get_local_size(0) | get_local_size(1) << 10 | get_local_size(2) << 20;
  o[4] = get_enqueued_local_size(0) | get_enqueued_local_size(1) << 10 | get_enqueued_local_size(2) << 20;
  o[5] = get_num_groups(0) | get_num_groups(1) << 10 | get_num_groups(2) << 20;
  o[6] = get_global_size(0) | get_global_size(1) << 10 | get_global_size(2) << 20;
  o[7] = get_work_dim();
  o[8] = get_local_linear_id();
  o[9] = get_global_linear_id();
}
