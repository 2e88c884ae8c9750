/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#pragma once

/*
 * The measured traffic, once over uDAPL and once over raw verbs: two endpoints of this process, connected to each other
 * through the device. The front endpoint posts RDMA Writes and Sends, the back one receives. Every request asks for its
 * completion and moves MESSAGE_SIZE bytes, which is too long for inline data. An error ends the program with a line.
 *
 * Threads: one thread may post to an endpoint while another takes from a completion queue of the other.
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

/* Take the next completion, which must belong to the request with this number. False: there is none yet. */
bool take_request(uint64_t number);
bool take_recv(uint64_t number);

/* The same, but sleeps until there is one. */
void wait_recv(uint64_t number);
