// Defines what extern.s refers to.
  .data
  .globl given
  .type given,@object
  .size given, 32
  .p2align 4
given:
  .quad 1, 2, 3
  .quad .Lself
.Lself:
  .quad .Lself
  .globl zeroes
  .bss
  .type zeroes,@object
  .size zeroes, 8192
  .p2align 12
zeroes:
  .zero 8192
