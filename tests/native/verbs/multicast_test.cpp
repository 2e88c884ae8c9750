// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Multicast by verbs alone: three processes in two network namespaces attach a queue pair to a group, and a fourth
// sends to it. Runs under dapple-run.
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <netinet/ip.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <initializer_list>

#include "tests/native/clock.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/unit/provider/cmocka.hpp"

using namespace dapple::tests;

namespace {

constexpr uint32_t kMulticastQpn = 0xFFFFFF;
constexpr uint32_t kQkey = 0x11111111;
constexpr uint32_t kMessages = 8;
constexpr size_t kGrh = 40;
constexpr size_t kRoom = 1024;
constexpr uint32_t kSize = 500;

// A host's addresses. The namespace's descriptor is -1 for the one in which the test began.
struct Host {
  int space = -1;
  const char* ipv4;
  const char* ipv6;
};

Host here = {-1, "::ffff:10.77.0.1", "fd77::1"};
Host there = {-1, "::ffff:10.77.0.2", "fd77::2"};

ibv_gid gid_of(const char* text) {
  ibv_gid gid = {};
  inet_pton(AF_INET6, text, gid.raw);
  return gid;
}

bool is_ipv4(const ibv_gid& gid) {
  return gid.raw[0] == 0 && gid.raw[10] == 0xFF;
}

int failed(const char* what) {
  perror(what);
  return 1;
}

struct Party {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_cq* cq = nullptr;
  ibv_qp* qp = nullptr;
  ibv_mr* mr = nullptr;
  uint8_t gid_index = 0;
  char buffer[kMessages][kRoom] = {};

  bool open(const char* address) {
    const ibv_gid own = gid_of(address);
    int count = 0;
    ibv_device** list = ibv_get_device_list(&count);
    for (int i = 0; i < count && context == nullptr; i++) {
      context = ibv_open_device(list[i]);
      ibv_gid gid;
      bool found = false;
      for (int k = 0; context != nullptr && k < 16 && !found; k++) {
        found = ibv_query_gid(context, 1, k, &gid) == 0 && memcmp(&gid, &own, sizeof gid) == 0;
        gid_index = static_cast<uint8_t>(k);
      }
      if (context != nullptr && !found) {
        ibv_close_device(context);
        context = nullptr;
      }
    }
    ibv_free_device_list(list);
    return context != nullptr && begin();
  }

  bool begin() {
    pd = ibv_alloc_pd(context);
    cq = ibv_create_cq(context, 2 * kMessages, nullptr, nullptr, 0);
    mr = ibv_reg_mr(pd, buffer, sizeof buffer, int{IBV_ACCESS_LOCAL_WRITE});
    ibv_qp_init_attr init = {};
    init.send_cq = init.recv_cq = cq;
    init.qp_type = IBV_QPT_UD;
    init.cap.max_send_wr = init.cap.max_recv_wr = kMessages;
    init.cap.max_send_sge = init.cap.max_recv_sge = 1;
    qp = ibv_create_qp(pd, &init);
    if (mr == nullptr || qp == nullptr) return false;
    ibv_qp_attr attr = {};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qkey = kQkey;
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) != 0) return false;
    attr.qp_state = IBV_QPS_RTR;
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE) != 0) return false;
    attr.qp_state = IBV_QPS_RTS;
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) == 0;
  }

  bool next(ibv_wc& wc, int milliseconds) const {
    const timespec pause = {0, 1000000};
    const double end = now() + milliseconds / 1e3;
    bool found = false;
    do {
      found = ibv_poll_cq(cq, 1, &wc) == 1;
      if (!found) nanosleep(&pause, nullptr);
    } while (!found && now() < end);
    return found;
  }
};

// True if these 40 bytes belong to a packet from the sender to the group.
bool right_header(const char* bytes, const ibv_gid& group) {
  if (is_ipv4(group)) {
    ip header;
    memcpy(&header, bytes + kGrh - sizeof header, sizeof header);
    const ibv_gid sender = gid_of(here.ipv4);
    return header.ip_v == 4 && memcmp(&header.ip_dst, group.raw + 12, 4) == 0 &&
           memcmp(&header.ip_src, sender.raw + 12, 4) == 0;
  }
  ibv_grh header;
  memcpy(&header, bytes, sizeof header);
  const ibv_gid sender = gid_of(here.ipv6);
  return (bytes[0] & 0xF0) == 0x60 && memcmp(&header.dgid, &group, 16) == 0 && memcmp(&header.sgid, &sender, 16) == 0;
}

// The link carries packets some time after it was set up.
bool link_is_up() {
  return run("for i in $(seq 200); do ip link | grep -q ' v[ab]@.* state UP' && exit 0; sleep 0.05; done; exit 1");
}

// Returns the exit code. Writes 'a' when it is attached and 'd' when it is detached; then waits for a byte from `in`.
int receive(const Host& host, const ibv_gid& group, int in, int out) {
  if (host.space >= 0 && setns(host.space, CLONE_NEWNET) != 0) return failed("setns");
  if (!link_is_up()) return failed("no link");
  static Party party;
  if (!party.open(is_ipv4(group) ? host.ipv4 : host.ipv6)) return failed("open");
  for (uint32_t i = 0; i < kMessages; i++) {
    ibv_sge segment = {reinterpret_cast<uintptr_t>(party.buffer[i]), kRoom, party.mr->lkey};
    ibv_recv_wr receive = {i, nullptr, &segment, 1};
    ibv_recv_wr* bad;
    if (ibv_post_recv(party.qp, &receive, &bad) != 0) return failed("ibv_post_recv");
  }
  if (ibv_attach_mcast(party.qp, &group, 0) != 0) return failed("ibv_attach_mcast");
  if (write(out, "a", 1) != 1) return 1;
  ibv_wc wc;
  // One receive is left for a message that must not come.
  for (uint32_t i = 0; i + 1 < kMessages; i++) {
    if (!party.next(wc, 10000)) return failed("no message");
    const char* bytes = party.buffer[wc.wr_id];
    const bool good = wc.status == IBV_WC_SUCCESS && wc.byte_len == kGrh + kSize && (wc.wc_flags & IBV_WC_GRH) != 0 &&
                      static_cast<uint32_t>(bytes[kGrh]) == i && bytes[kGrh + kSize - 1] == 'x';
    if (!good || !right_header(bytes, group)) {
      fprintf(stderr, "message %u: status %d, %u bytes, number %d\n", i, wc.status, wc.byte_len, bytes[kGrh]);
      return 1;
    }
  }
  if (ibv_detach_mcast(party.qp, &group, 0) != 0) return failed("ibv_detach_mcast");
  char byte;
  if (write(out, "d", 1) != 1 || read(in, &byte, 1) != 1) return 1;
  return party.next(wc, 200) ? failed("a message came after the end") : 0;
}

constexpr uint32_t kGroups = 256;  // max_mcast_grp

// Most are of IPv4, which has the lower limit for a socket: 20.
ibv_gid group_of(uint32_t number) {
  char text[40];
  if (number % 8 == 7) {
    snprintf(text, sizeof text, "ff1e::77:%x", number);
  } else {
    snprintf(text, sizeof text, "::ffff:239.7.%u.%u", number / 256, number % 256);
  }
  return gid_of(text);
}

constexpr uint32_t kChosen[] = {0, 19, 20, 21, 135, 254};
constexpr uint32_t kNumberChosen = sizeof kChosen / sizeof *kChosen;
static_assert(kNumberChosen < kMessages);

// As receive(), for one queue pair that is attached to as many groups as the device reports.
int receive_from_many(const Host& host, const ibv_gid&, int in, int out) {
  if (host.space >= 0 && setns(host.space, CLONE_NEWNET) != 0) return failed("setns");
  if (!link_is_up()) return failed("no link");
  static Party party;
  if (!party.open(host.ipv4)) return failed("open");
  ibv_device_attr attr = {};
  if (ibv_query_device(party.context, &attr) != 0 || attr.max_mcast_grp != int{kGroups}) return failed("max_mcast_grp");
  for (uint32_t i = 0; i < kMessages; i++) {
    ibv_sge segment = {reinterpret_cast<uintptr_t>(party.buffer[i]), kRoom, party.mr->lkey};
    ibv_recv_wr receive = {i, nullptr, &segment, 1};
    ibv_recv_wr* bad;
    if (ibv_post_recv(party.qp, &receive, &bad) != 0) return failed("ibv_post_recv");
  }
  for (uint32_t i = 0; i < kGroups; i++) {
    const ibv_gid group = group_of(i);
    if (ibv_attach_mcast(party.qp, &group, 0) != 0) return failed("ibv_attach_mcast");
  }
  const ibv_gid more = group_of(kGroups);
  if (ibv_attach_mcast(party.qp, &more, 0) != ENOMEM) return failed("one group more");
  if (write(out, "a", 1) != 1) return 1;
  ibv_wc wc;
  for (const uint32_t number : kChosen) {
    if (!party.next(wc, 20000) || wc.status != IBV_WC_SUCCESS) return failed("no message");
    const ibv_gid group = group_of(number);
    if (wc.byte_len != kGrh + kSize || !right_header(party.buffer[wc.wr_id], group)) return failed("another message");
  }
  for (uint32_t i = 0; i < kGroups; i++) {
    const ibv_gid group = group_of(i);
    if (ibv_detach_mcast(party.qp, &group, 0) != 0) return failed("ibv_detach_mcast");
  }
  char byte;
  if (write(out, "d", 1) != 1 || read(in, &byte, 1) != 1) return 1;
  return party.next(wc, 200) ? failed("a message came after the end") : 0;
}

// The exit code. Sends `count` messages to the group, numbered from 0.
int send(const ibv_gid& group, uint32_t count) {
  static Party party;
  if (!party.open(is_ipv4(group) ? here.ipv4 : here.ipv6)) return failed("open");
  ibv_ah_attr attr = {};
  attr.is_global = 1;
  attr.port_num = 1;
  attr.grh.dgid = group;
  attr.grh.sgid_index = party.gid_index;
  attr.grh.hop_limit = 1;
  ibv_ah* ah = ibv_create_ah(party.pd, &attr);
  if (ah == nullptr) return failed("ibv_create_ah");
  for (uint32_t i = 0; i < count; i++) {
    memset(party.buffer[i], 'x', kSize);
    party.buffer[i][0] = static_cast<char>(i);
    ibv_sge segment = {reinterpret_cast<uintptr_t>(party.buffer[i]), kSize, party.mr->lkey};
    ibv_send_wr request = {};
    request.sg_list = &segment;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.ud = {ah, kMulticastQpn, kQkey};
    ibv_send_wr* bad;
    if (ibv_post_send(party.qp, &request, &bad) != 0) return failed("ibv_post_send");
    ibv_wc wc;
    if (!party.next(wc, 10000) || wc.status != IBV_WC_SUCCESS) return failed("completion of a send");
  }
  return 0;
}

bool run_sender(const ibv_gid& group, uint32_t count) {
  const pid_t child = fork();
  if (child == 0) _exit(send(group, count));
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0;
}
bool run_sender(const char* group, uint32_t count) {
  return run_sender(gid_of(group), count);
}

struct Receiver {
  pid_t process = -1;
  int to = -1;
  int from = -1;

  using Role = int (*)(const Host& host, const ibv_gid& group, int in, int out);
  bool start(const Host& host, const char* group, Role role = receive) {
    int down[2], up[2];
    if (pipe(down) != 0 || pipe(up) != 0) return false;
    process = fork();
    if (process == 0) {
      close(down[1]);
      close(up[0]);
      _exit(role(host, gid_of(group), down[0], up[1]));
    }
    close(down[0]);
    close(up[1]);
    to = down[1];
    from = up[0];
    return says('a');
  }
  bool says(char word) const {
    // Other processes may still hold the end of the pipe of a process that failed.
    pollfd waiting = {from, POLLIN, 0};
    char byte = 0;
    return poll(&waiting, 1, 20000) == 1 && read(from, &byte, 1) == 1 && byte == word;
  }
  bool ends_well() {
    const bool told = write(to, "x", 1) == 1;
    return end() == 0 && told;
  }
  // Waits for the process and returns its status; 1 if there is none.
  int end() {
    int status = 1;
    if (process > 0) waitpid(process, &status, 0);
    for (const int fd : {to, from}) {
      if (fd >= 0) close(fd);
    }
    *this = {};
    return status;
  }
};

Receiver receivers[3];

int end_all(void**) {
  for (Receiver& receiver : receivers) {
    if (receiver.process > 0) kill(receiver.process, SIGKILL);
    receiver.end();
  }
  return 0;
}

void multicast__to_a_group__reaches_all_members_and_nobody_else(void** state) {
  const auto* group = static_cast<const char*>(*state);
  const bool ipv4 = is_ipv4(gid_of(group));
  for (int i = 0; i < 3; i++) assert_true(receivers[i].start(i == 0 ? there : here, group));
  assert_true(run_sender(ipv4 ? "::ffff:239.1.1.99" : "ff1e::99", 1));
  assert_true(run_sender(group, kMessages - 1));
  for (const Receiver& receiver : receivers) assert_true(receiver.says('d'));
  assert_true(run_sender(group, 1));
  for (Receiver& receiver : receivers) assert_true(receiver.ends_well());
}

void multicast__to_the_most_groups__reaches_their_member(void**) {
  assert_true(receivers[0].start(there, "::", receive_from_many));
  for (const uint32_t number : kChosen) assert_true(run_sender(group_of(number), 1));
  assert_true(receivers[0].says('d'));
  assert_true(run_sender(group_of(kChosen[2]), 1));
  assert_true(receivers[0].ends_well());
}

bool becomes_readable(int fd, int milliseconds) {
  pollfd waiting = {fd, POLLIN, 0};
  return poll(&waiting, 1, milliseconds) == 1;
}

// Reads asynchronous events until one of this type comes.
bool hears(ibv_context* context, ibv_event_type type) {
  ibv_async_event event = {};
  do {
    if (!becomes_readable(context->async_fd, 20000) || ibv_get_async_event(context, &event) != 0) return false;
    ibv_ack_async_event(&event);
  } while (event.event_type != type);
  return true;
}

// True if the program hears of its device's end exactly once. `other` is a device that stays.
bool hears_the_end(ibv_context* context, ibv_context* other) {
  ibv_port_attr port;
  if (!hears(context, IBV_EVENT_DEVICE_FATAL) || ibv_query_port(context, 1, &port) != ENODEV) return false;
  // The program looks at all of its devices after each change.
  if (!run("ip addr add 10.78.9.9/32 dev lo") || !hears(other, IBV_EVENT_GID_CHANGE)) return false;
  return !becomes_readable(context->async_fd, 100) && ibv_query_port(other, 1, &port) == 0;
}

// A program cleans up after IBV_EVENT_DEVICE_FATAL.
void detach__netdev_is_gone__queue_pair_can_be_destroyed(void**) {
  if (!run("ip link add c0 type veth peer name c1 && ip addr add 10.78.0.1/24 dev c0 && ip link set c0 up"))
    skip_test("no veth pair can be made");
  const pid_t child = fork();
  if (child == 0) {
    static Party party, other;
    const ibv_gid group = gid_of("::ffff:239.1.1.8");
    if (!other.open("::ffff:127.0.0.1")) _exit(1);
    if (!party.open("::ffff:10.78.0.1") || ibv_attach_mcast(party.qp, &group, 0) != 0) _exit(1);
    if (!run("ip link del c0")) _exit(2);
    if (!hears_the_end(party.context, other.context)) _exit(6);
    if (ibv_detach_mcast(party.qp, &group, 0) != 0) _exit(3);
    if (ibv_destroy_qp(party.qp) != 0 || ibv_dereg_mr(party.mr) != 0 || ibv_destroy_cq(party.cq) != 0) _exit(4);
    _exit(ibv_dealloc_pd(party.pd) == 0 && ibv_close_device(party.context) == 0 ? 0 : 5);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

#define GROUP_TEST(group)                                                                                      \
  {                                                                                                            \
    "multicast__to_" group "__reaches_all_members_and_nobody_else",                                            \
        multicast__to_a_group__reaches_all_members_and_nobody_else, nullptr, end_all, const_cast<char*>(group) \
  }

}  // namespace

int main() {
  need_new_namespace();
  const VethPair veth = make_veth_pair();
  if (veth.other < 0) skip_program("no veth pair can be made");
  there.space = veth.other;
  const CMUnitTest tests[] = {
      GROUP_TEST("ff1e::77"),
      // A group of one link, whose address does not name the netdev.
      GROUP_TEST("ff12::77"),
      GROUP_TEST("::ffff:239.1.1.7"),
      cmocka_unit_test_teardown(multicast__to_the_most_groups__reaches_their_member, end_all),
      cmocka_unit_test(detach__netdev_is_gone__queue_pair_can_be_destroyed),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
