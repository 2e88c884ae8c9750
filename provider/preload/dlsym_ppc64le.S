// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dlsym() and dlvsym() of preload.cpp for POWER (ELFv2). Compilers make no jump of a call by a pointer there: the callee
// may have another table of contents, and a caller in C++ would have to restore its own. Here the program's caller
// restores its own anyway, because it has called this library by the loader.
  .abiversion 2
  .section .text
  .set frame, 128

// \detour gets the arguments and returns a function of ours, which is the result, or null. Without one the C library's
// function, which \real returns, gets the arguments, and finds its caller by the return address.
  .macro jumping name, detour, real
  .globl \name
  .type \name, @function
  .p2align 4
\name:
  .cfi_startproc
  addis 2, 12, .TOC. - \name@ha
  addi 2, 2, .TOC. - \name@l
  .localentry \name, . - \name
  mflr 0
  std 0, 16(1)
  .cfi_offset 65, 16
  stdu 1, -frame(1)
  .cfi_adjust_cfa_offset frame
  std 3, 96(1)
  std 4, 104(1)
  std 5, 112(1)
  bl \detour
  nop
  cmpdi 3, 0
  bne 1f
  bl \real
  nop
  mr 12, 3
  ld 3, 96(1)
  ld 4, 104(1)
  ld 5, 112(1)
  addi 1, 1, frame
  ld 0, 16(1)
  mtlr 0
  mtctr 12
  bctr
1:
  addi 1, 1, frame
  ld 0, 16(1)
  mtlr 0
  blr
  .cfi_endproc
  .size \name, . - \name
  .endm

  jumping dlsym, dapple_detour_of_dlsym, dapple_real_dlsym
  jumping dlvsym, dapple_detour_of_dlvsym, dapple_real_dlvsym

  .section .note.GNU-stack, "", @progbits
