// The other of two files with a local variable of the same name.
  .data
  .p2align 3
  .type var,@object
  .size var, 8
var:
  .quad 2
  .globl second
  .type second,@object
  .size second, 8
second:
  .quad var
