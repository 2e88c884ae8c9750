/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
#pragma once

/*
 * The open descriptors of this process by kind. The software device makes some by itself and closes them in the
 * background: a UDP socket for each slot that one of its peers has had, and links to living programs of this host.
 */
#ifdef __cplusplus
extern "C" {
#endif

struct descriptors {
  int others; /* all but those of the next two kinds */
  int udp_sockets;
  int links; /* of the software device, to programs of this host */
};

struct descriptors count_descriptors(void);

/* Waits for others to be as expected, for ten seconds at most: a thread may close one late. Returns their last number.
 */
int other_descriptors_settle(int expected);

#ifdef __cplusplus
}
#endif
