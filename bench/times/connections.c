/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * bench-times-connections IA SECONDS: makes and ends connections of two endpoints of this process, one after the other,
 * over uDAPL, and prints how many there were in a second. It links libdat2 and runs on our library and on the original.
 */
#include "bench/common/dat.h"

#define WARM_UP 5U /* connections */

static struct ia ia;
static struct listener here;
static DAT_EVD_HANDLE dto, connections;

static void connect_and_disconnect(void) {
  struct end front = {.recv = dto, .request = dto, .connect = connections};
  struct end back = front;
  must(dat_ep_create(ia.handle, ia.pz, dto, dto, connections, NULL, &front.ep), "dat_ep_create");
  must(dat_ep_create(ia.handle, ia.pz, dto, dto, connections, NULL, &back.ep), "dat_ep_create");
  connect_ends(&ia, &here, &front, &back);
  disconnect_ends(&front, &back);
}

int main(int argc, char** argv) {
  unsigned int made = 0;
  double begin_s, took_s;
  check(argc == 3 && atof(argv[2]) > 0, "give the IA and the seconds");
  ia = open_ia(argv[1]);
  dto = make_evd(&ia, 8, DAT_EVD_DTO_FLAG);
  connections = make_evd(&ia, 8, DAT_EVD_CONNECTION_FLAG);
  here = listen_here(&ia);
  for (unsigned int i = 0; i < WARM_UP; ++i) connect_and_disconnect();
  begin_s = now_s();
  do {
    connect_and_disconnect();
    ++made;
    took_s = now_s() - begin_s;
  } while (took_s < atof(argv[2]));
  printf("%.1f\n", made / took_s);
  close_ia(&ia);
  return 0;
}
