/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#ifndef DAPPLE_BENCH_TRAFFIC_H
#define DAPPLE_BENCH_TRAFFIC_H

/*
 * What is measured, once over uDAPL and once over raw verbs: two endpoints of this process, connected to each other
 * through the device. The front one posts RDMA Writes and Sends, the back one receives. Every request asks for its
 * completion and moves MESSAGE_SIZE bytes, which is too long for inline data. What goes wrong ends the program with a
 * line.
 *
 * Threads: posting to one end may go on beside taking from a queue of the other.
 */
#include <stdbool.h>
#include <stdint.h>

#define MESSAGE_SIZE 1024 /* bytes */
#define MAX_OUTSTANDING 64
#define QUEUE_LENGTH 128 /* of every queue of completions */

void traffic_open(const char* where);
void traffic_close(void);

void post_write(uint64_t number);
void post_send(uint64_t number);
void post_recv(uint64_t number);

/* Take the next completion, which must be the request's of this number. False: there is none yet. */
bool take_request(uint64_t number);
bool take_recv(uint64_t number);

/* The same, but sleeps until there is one. */
void wait_recv(uint64_t number);

void check(bool good, const char* what);

#endif
