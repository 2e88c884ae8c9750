/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#ifndef DAPPLE_DAT2_DAT_PLATFORM_SPECIFIC_H
#define DAPPLE_DAT2_DAT_PLATFORM_SPECIFIC_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Direction of an argument, for readers and for programs written in this style. */
#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif
#ifndef INOUT
#define INOUT
#endif

/* Linkage of the exported functions: the platform's default. */
#define DAT_API
#define DAT_EXPORT extern

typedef uint32_t DAT_UINT32;
typedef uint64_t DAT_UINT64;
typedef unsigned long long DAT_UVERYLONG;
typedef void* DAT_PVOID;
typedef int DAT_COUNT;
typedef DAT_UINT64 DAT_PADDR;

#ifndef UINT64_C
#define UINT64_C(c) c##ULL
#endif

/* An IA handle is a small integer, converted to a pointer: see dat_ia_openv(). */
#define DAT_IA_HANDLE_TO_UL(handle) (unsigned long)(handle)
#define DAT_UL_TO_IA_HANDLE(number) (DAT_IA_HANDLE)(number)

/* Alignment, in bytes, that suits every provider's buffers. */
#ifndef DAT_OPTIMAL_ALIGNMENT
#define DAT_OPTIMAL_ALIGNMENT 256
#endif

/* Arguments of socket(2), for the common service points. */
typedef struct dat_comm {
  int domain;
  int type;
  int protocol;
} DAT_COMM;

/* A file descriptor that poll(2) understands. */
typedef int DAT_FD;

/* DAT_SOCK_ADDR6 is an incomplete type until the program includes <netinet/in.h>. */
typedef struct sockaddr DAT_SOCK_ADDR;
typedef struct sockaddr_in6 DAT_SOCK_ADDR6;
#define DAT_AF_INET AF_INET
#define DAT_AF_INET6 AF_INET6

#endif
