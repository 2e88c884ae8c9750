// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// Hosts that connect by rdma_cm over a simulated wire. A test gives commands as programs do, takes their events, and
// lets the wire lose datagrams.
#pragma once

#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "provider/dappled/rdma_cm/service.hpp"
#include "tests/unit/provider/cmocka.hpp"

namespace dapple::dappled::rdma_cm::test {

inline constexpr Time kSecond = 1'000'000'000;

struct Datagram {
  cm::Path path;
  cm::Mad mad{};
};

// 10.0.0.N and fd00::N on eth0, 127.0.0.1 on lo.
class Host final : public World {
 public:
  explicit Host(uint8_t number);

  void send(const cm::Path& path, const cm::Mad& mad) override { out.push_back({path, mad}); }
  uint64_t random() override;
  const DeviceTable& devices() override { return table; }
  const soft::Rails& rails(const Channel&) override { return seen; }
  int route(const Channel& channel, const Address& destination, Address& source) override;
  int find_neighbour(const Address& source, const Address& destination, Neighbour& neighbour) override;
  uint32_t gid_index(const CmId& id) override { return id.gid_index; }
  int check_own(const Address&) override { return own_error; }
  bool separates_families() override { return ipv6_alone; }
  void wake(Channel& channel) override;
  void write_journal(Channel& channel, uint32_t place, std::span<const std::byte> entry) override;

  // eth0 disappears.
  void lose_device();
  using Journal = std::vector<std::vector<std::byte>>;
  // Kills dappled, and starts another. The channel's journal is left.
  Journal replace(Channel& channel);
  Restoration restore(Channel& channel, const Journal& journal);
  // The other dappled takes the channel over at once.
  void die(Channel& channel) { restore(channel, replace(channel)); }

  // Runs a program's command: returns 0 or an errno.
  template <class Command>
  int command(Channel& channel, uint32_t number, const Command& command) {
    uint32_t none = 0;
    return ask(channel, number, command, none, 0);
  }
  template <class Command, class Response>
  int ask(Channel& channel, uint32_t number, const Command& command, Response& response, size_t room = sizeof(Response),
          Channel* source = nullptr) {
    return exchange(channel, number, {reinterpret_cast<const uint8_t*>(&command), sizeof command},
                    {reinterpret_cast<uint8_t*>(&response), room}, source);
  }
  int exchange(Channel& channel, uint32_t number, std::span<const uint8_t> command, std::span<uint8_t> response,
               Channel* source = nullptr, std::span<const uint8_t> extra = {});

  uint32_t create(Channel& channel, uint16_t port_space, uint64_t uid);
  int destroy(Channel& channel, uint32_t id, uint32_t* events_reported = nullptr);
  int bind(Channel& channel, uint32_t id, const sockaddr_in6& address);
  int resolve(Channel& channel, uint32_t id, const sockaddr_in6& destination, uint32_t timeout_ms = 2000);
  int resolve_route(Channel& channel, uint32_t id);
  int listen(Channel& channel, uint32_t id, uint32_t backlog = 0);
  int connect(Channel& channel, uint32_t id, const rdma_ucm_conn_param& parameters);
  int accept(Channel& channel, uint32_t id, uint64_t uid, const rdma_ucm_conn_param& parameters);
  int disconnect(Channel& channel, uint32_t id);
  int query(Channel& channel, uint32_t id, rdma_ucm_query_route_resp& route);
  int attributes(Channel& channel, uint32_t id, ibv_qp_state state, ib_uverbs_qp_attr& attributes);
  int option(Channel& channel, uint32_t id, uint32_t name, std::span<const uint8_t> value);
  template <class Value>
  int option(Channel& channel, uint32_t id, uint32_t name, Value value) {
    return option(channel, id, name, std::span(reinterpret_cast<const uint8_t*>(&value), sizeof value));
  }

  // Takes the oldest event, which must be of this kind.
  rdma_ucm_event_resp event(Channel& channel, EventKind kind);
  void assert_no_event(Channel& channel);

  Netdevs netdevs;
  DeviceTable table;
  soft::Rails seen;  // the devices that programs see
  std::deque<Datagram> out;
  Time now = kSecond;
  std::map<Channel*, Journal> journals;
  uint32_t wakes = 0;
  uint32_t removed = 0;  // set by the last command
  uint32_t removed_events = 0;
  uint32_t ahead = 0;  // set by the last command: the id about which the program is going to ask
  uint32_t token = 0;  // for the next commands
  int route_error = 0;
  Address asked_route;            // the destination of the last look-up of a route
  int neighbour_error = 0;        // ENODATA: neighbours do not answer
  uint32_t looks = 0;             // the number of look-ups of neighbours
  int own_error = EADDRNOTAVAIL;  // for addresses that no device has
  bool ipv6_alone = false;        // net.ipv6.bindv6only
  std::unique_ptr<Service> service;

 private:
  uint8_t number_;
  uint64_t random_;
};

sockaddr_in6 ipv4(uint8_t last, uint16_t port);
sockaddr_in6 ipv6(uint8_t last, uint16_t port);
sockaddr_in6 any_ipv4(uint16_t port);
sockaddr_in6 any_ipv6(uint16_t port);

rdma_ucm_conn_param parameters(uint32_t qpn, uint8_t first_byte = 0, uint8_t private_data_len = 0);

// `client` is 10.0.0.1, `server` 10.0.0.2.
struct Pair {
  Host client{1};
  Host server{2};
  Channel active;
  Channel passive;
  uint32_t listener = 0;
  uint32_t connecting = 0;
  uint32_t accepted = 0;

  // Delivers the datagrams on the wire, until there are none.
  void carry();
  // Advances the time to the next deadline; false if there is none.
  bool wait();

  void listen(uint16_t port_space = RDMA_PS_TCP);
  void resolve(uint16_t port_space = RDMA_PS_TCP);
  // Run up to CONNECT_REQUEST, CONNECT_RESPONSE, and ESTABLISHED.
  void request();
  void respond();
  void establish();
  // Closes both channels, and checks that nothing is left after all time-outs.
  void finish();
};

int setup_pair(void** state);
int teardown_pair(void** state);
inline Pair& pair_of(void** state) {
  return *static_cast<Pair*>(*state);
}

}  // namespace dapple::dappled::rdma_cm::test

#define RDMA_CM_TEST(function) cmocka_unit_test_setup_teardown(function, setup_pair, teardown_pair)
