// One of two files with a local variable of the same name.
  .data
  .p2align 3
  .type var,@object
  .size var, 8
var:
  .quad 1
  .globl first
  .type first,@object
  .size first, 8
first:
  .quad var
