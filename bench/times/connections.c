/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SPDX-FileCopyrightText: The dapple authors */
/*
 * bench-times-connections IA SECONDS: makes and ends connections of two endpoints of this process, one after the other,
 * over uDAPL, and prints how many there were in a second. It links libdat2 and runs on our library and on the original.
 */
#include <dat2/udat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WAIT_US 60000000U
#define WARM_UP 5U /* connections */

static DAT_IA_HANDLE ia;
static DAT_PZ_HANDLE pz;
static DAT_EVD_HANDLE dto, requests, connections;
static DAT_IA_ADDRESS_PTR address;
static DAT_CONN_QUAL port;

static void check(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "bench-times-connections: %s\n", what);
  exit(1);
}

static void must(DAT_RETURN status, const char* what) {
  const char* type = "?";
  const char* subtype = "?";
  if (status == DAT_SUCCESS) return;
  dat_strerror(status, &type, &subtype);
  fprintf(stderr, "bench-times-connections: %s: %s %s\n", what, type, subtype);
  exit(1);
}

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static DAT_EVENT expect(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number) {
  DAT_EVENT event;
  DAT_COUNT more;
  must(dat_evd_wait(evd, WAIT_US, 1, &event, &more), "dat_evd_wait");
  check(event.event_number == number, "an event of another number");
  return event;
}

static void open_all(const char* name) {
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_PSP_HANDLE psp;
  DAT_IA_ATTR attr;
  must(dat_ia_open((DAT_NAME_PTR)(uintptr_t)name, 8, &async, &ia), "dat_ia_open");
  must(dat_ia_query(ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL), "dat_ia_query");
  address = attr.ia_address_ptr;
  must(dat_pz_create(ia, &pz), "dat_pz_create");
  must(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &dto), "dat_evd_create");
  must(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &requests), "dat_evd_create");
  must(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &connections), "dat_evd_create");
  must(dat_psp_create_any(ia, &port, requests, DAT_PSP_CONSUMER_FLAG, &psp), "dat_psp_create_any");
}

static void connect_and_disconnect(void) {
  DAT_EP_HANDLE front, back;
  DAT_EVENT arrival;
  must(dat_ep_create(ia, pz, dto, dto, connections, NULL, &front), "dat_ep_create");
  must(dat_ep_create(ia, pz, dto, dto, connections, NULL, &back), "dat_ep_create");
  must(dat_ep_connect(front, address, port, WAIT_US, 0, NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
       "dat_ep_connect");
  arrival = expect(requests, DAT_CONNECTION_REQUEST_EVENT);
  must(dat_cr_accept(arrival.event_data.cr_arrival_event_data.cr_handle, back, 0, NULL), "dat_cr_accept");
  for (int i = 0; i < 2; ++i) (void)expect(connections, DAT_CONNECTION_EVENT_ESTABLISHED);
  must(dat_ep_disconnect(front, DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
  for (int i = 0; i < 2; ++i) (void)expect(connections, DAT_CONNECTION_EVENT_DISCONNECTED);
  must(dat_ep_free(front), "dat_ep_free");
  must(dat_ep_free(back), "dat_ep_free");
}

int main(int argc, char** argv) {
  unsigned int made = 0;
  double begin_s, took_s;
  check(argc == 3 && atof(argv[2]) > 0, "give the IA and the seconds");
  open_all(argv[1]);
  for (unsigned int i = 0; i < WARM_UP; ++i) connect_and_disconnect();
  begin_s = now_s();
  do {
    connect_and_disconnect();
    ++made;
    took_s = now_s() - begin_s;
  } while (took_s < atof(argv[2]));
  printf("%.1f\n", made / took_s);
  must(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
  return 0;
}
