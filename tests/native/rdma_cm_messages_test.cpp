// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Tests dappled's half of rdma_cm by its messages: channels as descriptors, the end of a channel, and the end of
// dappled.
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_user_cm.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <vector>

#include "provider/member/daemon_link.hpp"
#include "tests/native/namespaces.hpp"
#include "tests/unit/provider/rig.hpp"

using namespace dapple;
using namespace dapple::soft;
using tests::rig_of;

namespace {

constexpr uint16_t kPort = 7174;
constexpr int kSoon = 20000;
// enum rdma_cm_event_type of librdmacm.
constexpr uint32_t kAddrResolved = 0, kRouteResolved = 2, kConnectRequest = 4, kConnectResponse = 5, kEstablished = 9,
                   kDisconnected = 10;

std::unique_ptr<DaemonLink> link_;

// A channel as the door of rdma_cm has it.
struct Channel {
  OwnedFd own;
  OwnedFd dappleds;
  OwnedFd journal;
  CmChannelName name;

  Channel() {
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    own.reset(ends[0]);
    dappleds.reset(ends[1]);
  }
  bool open() {
    Problem problem;
    return link_->cm_open(dappleds.get(), name, journal, problem);
  }
};

// The channels that hand_over() restores at each later dappled.
std::vector<Channel*> channels;

void hand_over(DaemonLink& link, Problem& problem) {
  for (const Channel* channel : channels) {
    Problem loss;
    link.restore({channel->name, channel->dappleds.get(), channel->journal.get()}, problem, loss);
  }
}

// With the link's lock, as the link calls hand_over() itself.
template <class Function>
void locked(Function function) {
  link_->fork_prepare();
  function();
  link_->fork_parent();
}

template <class Command, class Response>
int ask(const Channel& channel, uint32_t number, const Command& command, Response& response) {
  CmCommandRequest request;
  request.channel = channel.name;
  const rdma_ucm_cmd_hdr header{number, sizeof command, sizeof response};
  memcpy(request.command, &header, sizeof header);
  memcpy(request.command + sizeof header, &command, sizeof command);
  request.length = sizeof header + sizeof command;
  CmCommandReply reply;
  bool again = false;
  Problem problem;
  const int error = link_->cm_command(request, reply, again, problem);
  if (error == 0) memcpy(&response, reply.response, sizeof response);
  return error;
}

template <class Command>
int tell(const Channel& channel, uint32_t number, const Command& command) {
  uint32_t none = 0;
  return ask(channel, number, command, none);
}

uint32_t create(const Channel& channel, uint64_t uid) {
  rdma_ucm_create_id command = {};
  command.uid = uid;
  command.ps = RDMA_PS_TCP;
  rdma_ucm_create_id_resp response = {};
  assert_int_equal(ask(channel, RDMA_USER_CM_CMD_CREATE_ID, command, response), 0);
  return response.id;
}

sockaddr_in6 loopback() {
  sockaddr_in in = {};
  in.sin_family = AF_INET;
  in.sin_port = htons(kPort);
  in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  sockaddr_in6 address = {};
  memcpy(&address, &in, sizeof in);
  return address;
}

// Waits for the byte, as the door does.
rdma_ucm_event_resp event(const Channel& channel, uint32_t kind, int wait = kSoon) {
  rdma_ucm_event_resp event = {};
  pollfd waiting = {channel.own.get(), POLLIN, 0};
  assert_int_equal(poll(&waiting, 1, wait), 1);
  char byte;
  assert_int_equal(recv(channel.own.get(), &byte, 1, MSG_DONTWAIT), 1);
  assert_int_equal(ask(channel, RDMA_USER_CM_CMD_GET_EVENT, rdma_ucm_get_event{}, event), 0);
  assert_int_equal(event.event, kind);
  return event;
}

bool polls_readable(const Channel& channel, int wait = 0) {
  pollfd waiting = {channel.own.get(), POLLIN, 0};
  return poll(&waiting, 1, wait) == 1;
}

uint32_t listen_at(const Channel& channel) {
  const uint32_t id = create(channel, 77);
  rdma_ucm_bind_ip bind = {};
  bind.id = id;
  bind.addr = loopback();
  assert_int_equal(tell(channel, RDMA_USER_CM_CMD_BIND_IP, bind), 0);
  assert_int_equal(tell(channel, RDMA_USER_CM_CMD_LISTEN, rdma_ucm_listen{id, 0}), 0);
  return id;
}

rdma_ucm_conn_param parameters(uint32_t qpn) {
  rdma_ucm_conn_param made = {};
  made.qp_num = qpn;
  made.valid = 1;
  return made;
}

uint32_t connect_from(const Channel& channel, uint32_t qpn) {
  const uint32_t id = create(channel, 11);
  rdma_ucm_resolve_ip resolve = {};
  resolve.id = id;
  resolve.dst_addr = loopback();
  resolve.timeout_ms = 2000;
  assert_int_equal(tell(channel, RDMA_USER_CM_CMD_RESOLVE_IP, resolve), 0);
  event(channel, kAddrResolved);
  assert_int_equal(tell(channel, RDMA_USER_CM_CMD_RESOLVE_ROUTE, rdma_ucm_resolve_route{id, 2000}), 0);
  event(channel, kRouteResolved);
  rdma_ucm_connect connect = {};
  connect.id = id;
  connect.conn_param = parameters(qpn);
  assert_int_equal(tell(channel, RDMA_USER_CM_CMD_CONNECT, connect), 0);
  return id;
}

struct Connection {
  Channel server;
  Channel client;
  uint32_t listener = 0;
  uint32_t accepted = 0;
  uint32_t connected = 0;

  void establish() {
    assert_true(server.open() && client.open());
    channels = {&server, &client};
    listener = listen_at(server);
    connected = connect_from(client, 0x10001);
    accepted = event(server, kConnectRequest).id;
    rdma_ucm_accept accept = {};
    accept.id = accepted;
    accept.uid = 22;
    accept.conn_param = parameters(0x20002);
    assert_int_equal(tell(server, RDMA_USER_CM_CMD_ACCEPT, accept), 0);
    event(client, kConnectResponse);
    accept = {};
    accept.id = connected;
    assert_int_equal(tell(client, RDMA_USER_CM_CMD_ACCEPT, accept), 0);
    event(server, kEstablished);
  }
  ~Connection() { channels.clear(); }
};

void close__of_the_programs_end__disconnects_the_peer(void** state) {
  Connection& connection = rig_of<Connection>(state);
  connection.establish();
  // A duplicate, such as a child's, keeps the channel.
  OwnedFd copy(fcntl(connection.client.own.get(), F_DUPFD_CLOEXEC, 3));
  connection.client.own.reset();
  assert_false(polls_readable(connection.server, 100));
  copy.reset();
  assert_int_equal(event(connection.server, kDisconnected).uid, 22);
  assert_int_equal(tell(connection.client, RDMA_USER_CM_CMD_DISCONNECT, rdma_ucm_disconnect{connection.connected}),
                   ENODEV);
}

void kill__dappled_beside_a_connection__it_stays(void** state) {
  Connection& connection = rig_of<Connection>(state);
  connection.establish();
  Problem problem;
  for (int i = 0; i < 5; i++) {
    StatusReply status;
    assert_true(link_->status(status, problem));
    assert_int_equal(kill(static_cast<pid_t>(status.process), SIGKILL), 0);
    pollfd gone = {link_->fd(), POLLRDHUP, 0};
    assert_int_equal(poll(&gone, 1, kSoon), 1);
    assert_true(link_->check(problem));
    assert_false(polls_readable(connection.client));
    assert_false(polls_readable(connection.server));
  }
  // The listener stays, too.
  Channel third;
  assert_true(third.open());
  connect_from(third, 0x30003);
  event(connection.server, kConnectRequest);
  assert_int_equal(tell(connection.client, RDMA_USER_CM_CMD_DISCONNECT, rdma_ucm_disconnect{connection.connected}), 0);
  event(connection.server, kDisconnected);
  event(connection.client, kDisconnected);
}

void restore__of_a_living_channel__changes_nothing(void** state) {
  Connection& connection = rig_of<Connection>(state);
  connection.establish();
  Problem problem;
  locked([&] { hand_over(*link_, problem); });
  assert_int_equal(problem.error, 0);
  assert_int_equal(tell(connection.client, RDMA_USER_CM_CMD_DISCONNECT, rdma_ucm_disconnect{connection.connected}), 0);
  event(connection.server, kDisconnected);
}

void unread_events__more_than_a_socket_holds__all_come(void**) {
  constexpr uint32_t kMany = 2000;
  Channel channel;
  assert_true(channel.open());
  rdma_ucm_resolve_ip resolve = {};
  resolve.dst_addr = loopback();
  resolve.timeout_ms = 1;
  uint32_t ids[kMany];
  for (uint32_t& id : ids) {
    resolve.id = id = create(channel, 5);
    assert_int_equal(tell(channel, RDMA_USER_CM_CMD_RESOLVE_IP, resolve), 0);
  }
  for (const uint32_t id : ids) {
    rdma_ucm_event_resp response = {};
    assert_true(polls_readable(channel, kSoon));
    char byte;
    assert_int_equal(recv(channel.own.get(), &byte, 1, MSG_DONTWAIT), 1);
    assert_int_equal(ask(channel, RDMA_USER_CM_CMD_GET_EVENT, rdma_ucm_get_event{}, response), 0);
    assert_int_equal(response.id, id);
    assert_int_equal(response.event, kAddrResolved);
  }
  assert_false(polls_readable(channel, 50));
}

void open__of_other_descriptors__is_refused(void**) {
  Problem problem;
  CmChannelName name;
  OwnedFd journal;
  int ends[2];
  assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
  assert_false(link_->cm_open(ends[1], name, journal, problem));
  assert_int_equal(problem.error, EINVAL);
  Channel channel;
  // dappled accepts neither a file on which it could block, nor an empty one. A refused channel reads an end of file.
  Problem loss;
  locked([&] { link_->restore({name, channel.dappleds.get(), ends[0]}, problem, loss); });
  assert_int_equal(problem.error, EINVAL);
  assert_string_not_equal(loss.line, "");
  char byte;
  assert_int_equal(recv(channel.own.get(), &byte, 1, MSG_DONTWAIT), 0);
  close(ends[0]);
  close(ends[1]);
  assert_true(link_->check(problem));
}

void command__wrong_key__is_refused(void**) {
  Channel channel;
  assert_true(channel.open());
  create(channel, 1);
  channel.name.key++;
  assert_int_equal(tell(channel, RDMA_USER_CM_CMD_GET_EVENT, rdma_ucm_get_event{}), ENODEV);
  channel.name.key--;
  channel.name.number++;
  assert_int_equal(tell(channel, RDMA_USER_CM_CMD_GET_EVENT, rdma_ucm_get_event{}), ENODEV);
}

// The number that dappled has written to the channel's front.
uint32_t counted(const Channel& channel) {
  void* mapped = mmap(nullptr, sizeof(CmFront), PROT_READ, MAP_SHARED, channel.journal.get(), 0);
  assert_ptr_not_equal(mapped, MAP_FAILED);
  const uint32_t count = static_cast<const CmFront*>(mapped)->commands.load();
  munmap(mapped, sizeof(CmFront));
  return count;
}

// A process drops the answers that came with an event if a later command may have changed the id.
void commands__that_may_change_an_id__are_counted(void**) {
  Channel channel;
  assert_true(channel.open());
  assert_int_equal(counted(channel), 0);
  rdma_ucm_query query = {};
  query.id = create(channel, 1);
  assert_int_equal(counted(channel), 1);
  rdma_ucm_query_route_resp route;
  assert_int_equal(ask(channel, RDMA_USER_CM_CMD_QUERY_ROUTE, query, route), 0);
  rdma_ucm_init_qp_attr question = {};
  question.id = query.id;
  ib_uverbs_qp_attr attributes;
  assert_int_equal(ask(channel, RDMA_USER_CM_CMD_INIT_QP_ATTR, question, attributes), EINVAL);
  rdma_ucm_event_resp none;
  assert_int_equal(ask(channel, RDMA_USER_CM_CMD_GET_EVENT, rdma_ucm_get_event{}, none), EAGAIN);
  assert_int_equal(counted(channel), 1);
  rdma_ucm_bind_ip bind = {};
  bind.id = query.id;
  bind.addr = loopback();
  assert_int_equal(tell(channel, RDMA_USER_CM_CMD_BIND_IP, bind), 0);
  assert_int_equal(counted(channel), 2);
}

void resolve(const Channel& channel, uint32_t id) {
  rdma_ucm_resolve_ip resolve = {};
  resolve.id = id;
  resolve.dst_addr = loopback();
  resolve.timeout_ms = 2000;
  assert_int_equal(tell(channel, RDMA_USER_CM_CMD_RESOLVE_IP, resolve), 0);
}

// A process takes an unread event away with its id, and ends before it has put the others in order.
void held_channel__connection_that_holds_it_ends__goes_on(void**) {
  Channel channel;
  assert_true(channel.open());
  Problem problem;
  auto other = DaemonLink::open(problem);
  assert_non_null(other.get());
  const uint32_t first = create(channel, 1);
  resolve(channel, first);
  assert_true(polls_readable(channel, kSoon));
  char byte;
  assert_int_equal(recv(channel.own.get(), &byte, 1, MSG_DONTWAIT), 1);
  link_.swap(other);
  rdma_ucm_destroy_id destroy = {};
  destroy.id = first;
  rdma_ucm_destroy_id_resp destroyed = {};
  const int error = ask(channel, RDMA_USER_CM_CMD_DESTROY_ID, destroy, destroyed);
  link_.swap(other);
  assert_int_equal(error, 0);
  resolve(channel, create(channel, 2));
  assert_false(polls_readable(channel, 100));
  other.reset();
  assert_int_equal(event(channel, kAddrResolved).uid, 2);
}

int open_link(void**) {
  tests::need_new_namespace();
  Problem problem;
  link_ = DaemonLink::open(problem);
  if (link_ == nullptr) fprintf(stderr, "%s\n", problem.line);
  if (link_ != nullptr) link_->when_reconnected(hand_over);
  return link_ != nullptr ? 0 : -1;
}

int close_link(void**) {
  link_.reset();
  return 0;
}

}  // namespace

int main() {
  const CMUnitTest cases[] = {
      rig_test(close__of_the_programs_end__disconnects_the_peer, Connection),
      rig_test(kill__dappled_beside_a_connection__it_stays, Connection),
      rig_test(restore__of_a_living_channel__changes_nothing, Connection),
      cmocka_unit_test(unread_events__more_than_a_socket_holds__all_come),
      cmocka_unit_test(open__of_other_descriptors__is_refused),
      cmocka_unit_test(command__wrong_key__is_refused),
      cmocka_unit_test(commands__that_may_change_an_id__are_counted),
      cmocka_unit_test(held_channel__connection_that_holds_it_ends__goes_on),
  };
  return cmocka_run_group_tests(cases, open_link, close_link);
}
