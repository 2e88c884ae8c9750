// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// dappled's loop: connections of members, their questions, changes of netdevs. One thread.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "provider/common/clock.hpp"
#include "provider/dappled/network/device_table.hpp"
#include "provider/dappled/network/gid_orders.hpp"
#include "provider/dappled/rdma_cm/channel_server.hpp"
#include "provider/dappled/slots.hpp"
#include "provider/dappled/trees/export.hpp"
#include "provider/dappled/trees/view_tree.hpp"
#include "provider/dappled/views.hpp"
#include "provider/dappled/xrc_domains.hpp"
#include "provider/network/socket_process.hpp"
#include "provider/protocol/cm_messages.hpp"
#include "provider/protocol/messages.hpp"
#include "provider/protocol/resource_messages.hpp"
#include "provider/protocol/transport_messages.hpp"
#include "provider/protocol/tree_messages.hpp"
#include "provider/protocol/unix_message.hpp"
#include "provider/protocol/xrc_messages.hpp"
#include "provider/system/owned_fd.hpp"
#include "provider/system/spare_descriptor.hpp"

namespace dapple::dappled {

// Milliseconds of CLOCK_MONOTONIC.
using Milliseconds = int64_t;
inline constexpr Milliseconds kUsualLinger = 1000;
inline Milliseconds now() {
  return static_cast<Milliseconds>(now_ms());
}

class Server final : private GidUsers {
 public:
  // `listener` listens on dappled's name. `linger`: the time that dappled stays without members. After its last member
  // a dappled with the usual time gives way to another user's.
  Server(soft::OwnedFd listener, const soft::SocketProcess& starter, Milliseconds linger);

  // `stop` becomes readable when run() is to end: a signalfd. 0, or an errno.
  int prepare(soft::OwnedFd stop);
  // Runs until the last member has been gone for long enough, or until `stop` becomes readable or another dappled has
  // the name; false in the last two cases.
  bool run();

 private:
  // Some programs have a second one, for rdma_cm or for the kernel's files.
  static constexpr uint32_t kMaxConnections = 4096;
  // The most connections of users that are not trusted.
  static constexpr uint32_t kMaxStrangers = 16;

  struct Connection {
    soft::OwnedFd socket;
    uid_t uid = 0;
    pid_t process = 0;  // 0: in a PID namespace that is not visible here
    bool trusted = false;
    uint32_t slot = 0;                // 0: none
    uint32_t view = Views::kDefault;  // of the devices
    uint32_t gid_order = GidOrders::kOwn;
    bool told = false;                // notified of a change, and has not asked for devices since
    soft::MessageKind question = {};  // the last one
    soft::CmChannelName held;         // the channel that its last command holds
    Milliseconds waits_for_port = 0;  // until then its question for a slot is open; 0: none is
    std::unique_ptr<Export> exported;
    bool watches_tree = false;  // its program reads the tree without dappled's knowledge
  };

  void accept_all();
  void accept_later(bool later);
  void accept_one(soft::OwnedFd socket);
  static ucred peer_of(const soft::OwnedFd& socket);
  void drop(Connection& connection);
  void wait_for_port(Connection& connection, Milliseconds until);  // 0: no longer
  void serve(Connection& connection);
  void drop_malformed(Connection& connection);

  // Who may ask a question.
  enum Asker : uint8_t { kTrusted, kAnyone };
  struct Answer {
    soft::MessageKind question;
    Asker asker;
    void (Server::*handle)(Connection&, std::span<const std::byte>, soft::Descriptors&);
  };
  static const Answer kAnswers[];

  void answer(Connection& connection, std::span<const std::byte> message, soft::Descriptors& descriptors);
  // Calls kAnswer if the message is a well-formed Request; drops the connection otherwise.
  template <class Request, void (Server::*kAnswer)(Connection&, const Request&, soft::Descriptors&)>
  void handle(Connection& connection, std::span<const std::byte> message, soft::Descriptors& descriptors) {
    Request request;
    if (!soft::well_formed(message, static_cast<uint16_t>(connection.question), request))
      return drop_malformed(connection);
    (this->*kAnswer)(connection, request, descriptors);
  }
  void answer_devices(Connection& connection, const soft::HeaderOnly&, soft::Descriptors&);
  void answer_slot(Connection& connection, const soft::HeaderOnly&, soft::Descriptors&);
  void grant_slot(Connection& connection);
  void answer_announce(Connection& connection, const soft::AnnounceRequest& request, soft::Descriptors& descriptors);
  void answer_status(Connection& connection, const soft::HeaderOnly&, soft::Descriptors&);
  // server_identity.cpp
  void answer_identity(Connection& connection, const soft::IdentityRequest& request, soft::Descriptors& descriptors);
  void answer_device(Connection& connection, const soft::DeviceRequest& request, soft::Descriptors&);
  // Makes the devices of a view with several devices on one netdev. False if that netdev cannot have them.
  bool divide_netdev(uint32_t view, soft::Problem& problem);
  // server_gids.cpp
  void answer_gids(Connection& connection, const soft::HeaderOnly&, soft::Descriptors& descriptors);
  void answer_announce_gids(Connection& connection, const soft::AnnounceGidsRequest& request, soft::Descriptors&);
  // server_resources.cpp. The member with this slot, or with the next higher one.
  const Connection* owner_from(uint32_t slot) const;
  void answer_resource_counts(Connection& connection, const soft::ResourceCountsRequest& request, soft::Descriptors&);
  void answer_resources(Connection& connection, const soft::ResourcesRequest& request, soft::Descriptors&);
  void answer_cm_ids(Connection& connection, const soft::CmIdsRequest& request, soft::Descriptors&);
  void answer_hw_counters(Connection& connection, const soft::HwCountersRequest& request, soft::Descriptors&);
  // server_transports.cpp
  void answer_transports(Connection& connection, const soft::TransportsRequest& request, soft::Descriptors&);

  // server_xrc.cpp
  void answer_xrc_open(Connection& connection, const soft::XrcOpenRequest& request, soft::Descriptors& descriptors);
  void answer_xrc_close(Connection& connection, const soft::XrcCloseRequest& request, soft::Descriptors&);

  // server_trees.cpp
  void answer_tree(Connection& connection, const soft::HeaderOnly&, soft::Descriptors&);
  void answer_refresh_tree(Connection& connection, const soft::RefreshTreeRequest& request, soft::Descriptors&);
  void answer_export_tree(Connection& connection, const soft::HeaderOnly&, soft::Descriptors& descriptors);
  using Sight = std::pair<uint32_t, uint32_t>;  // a view and an order of GIDs: how a program sees the devices
  static Sight sight_of(const Connection& connection) { return {connection.view, connection.gid_order}; }
  struct ShownDevices {
    std::vector<soft::DeviceInfo> infos;
    std::vector<face::ShownDevice> list;  // points into infos
  };
  // Describes a device to the programs with this sight. False if they do not see it.
  bool show(Sight sight, soft::DeviceInfo& device);
  ShownDevices shown_devices(Sight sight);
  // The devices that the connection's program sees are others now, or it has gone.
  void leave_sight(Sight sight);
  face::DeviceCounts counts_of(const soft::DeviceInfo& device) const;
  void tell_trees();  // devices have changed
  void write_exports();
  void end_export(Connection& connection);
  bool writes_regularly() const { return exports_ + tree_watchers_ > 0; }
  void remove_trees();

  // server_refusals.cpp
  soft::ErrorReply refusal(const soft::Problem& problem);
  void refuse_connection(const soft::OwnedFd& socket, const soft::Problem& problem);
  void refuse_unreceived(Connection& connection, std::span<const std::byte> message);
  void answer_yield(Connection& connection, const soft::YieldRequest& request, soft::Descriptors&);
  void yield_to(const soft::OwnedFd& successor);
  // Reads the question of a connection that there is no descriptor for, and yields if it is a less limited dappled's.
  bool yields_at_once(const soft::OwnedFd& socket);
  // These two answer the connection's question.
  void refuse(Connection& connection, const soft::Problem& problem);
  template <class Reply>
  void reply(Connection& connection, Reply& reply, std::span<const int> descriptors = {}) {
    const uint16_t kind = static_cast<uint16_t>(connection.question) | soft::kReplyBit;
    send_reply(connection, soft::seal(reply, kind), descriptors);
  }
  void send_reply(Connection& connection, std::span<const std::byte> message, std::span<const int> descriptors);

  // server_rdma_cm.cpp
  rdma_cm::ChannelServer::Program cm_program(const Connection& connection) const;
  void answer_cm_open(Connection& connection, const soft::HeaderOnly&, soft::Descriptors& descriptors);
  void answer_cm_restore(Connection& connection, const soft::HeaderOnly&, soft::Descriptors& descriptors);
  void answer_cm_command(Connection& connection, const soft::CmCommandRequest& request, soft::Descriptors&);
  void answer_cm_resume(Connection& connection, const soft::CmResumeRequest&, soft::Descriptors&);
  void resume(Connection& connection);
  void answer_capture(Connection& connection, const soft::HeaderOnly&, soft::Descriptors& descriptors);
  void give_wire(soft::Problem& problem);

  // GidUsers
  bool uses_gid(const soft::DeviceInfo& device, uint32_t gid_index) const override {
    return slots_.uses_gid(device.index, gid_index) || cm_.uses_gid(device.index, gid_index);
  }
  void gids_removed() override { slots_.gids_removed(); }
  // 0, or the errno of a reading that has failed. The table stays as it was then.
  int refresh_devices();
  void refuse_devices(Connection& connection, int error);
  void tell_changes();
  void retry_waiting();
  int wait_time() const;
  int wait_for_cm(int milliseconds) const;
  Milliseconds linger() const;
  bool gives_way() const;
  bool finished();
  // Asserts the conditions that hold between two turns of the loop.
  void assert_consistent() const;
  void leave_slot(Connection& connection);
  void watch(int fd, uint64_t key, bool on);
  uint32_t number_of(const Connection& connection) const { return static_cast<uint32_t>(&connection - connections_); }

  soft::OwnedFd stop_;
  soft::OwnedFd listener_;
  const soft::SocketProcess starter_;
  Milliseconds linger_;
  bool yielded_ = false;  // another dappled has the name
  soft::OwnedFd epoll_;
  soft::SpareDescriptor spare_;
  bool accepts_later_ = false;  // there is no spare descriptor, either
  NetdevWatch netdev_watch_;
  Netdevs netdevs_;
  bool unread_ = true;  // the netdevs have changed since they were read
  DeviceTable devices_;
  Views views_;
  GidOrders gid_orders_;
  Slots slots_;
  rdma_cm::ChannelServer cm_;
  XrcDomains xrc_domains_;
  bool slots_left_ = false;  // owners have left slots that may not be free yet
  Milliseconds alone_since_ = 0;
  bool had_members_ = false;
  Milliseconds next_port_look_ = 0;  // for rdma_cm's wire
  uint32_t told_generation_ = 0;     // of the devices
  uint32_t connection_count_ = 0;
  uint32_t members_ = 0;
  uint32_t waiting_ = 0;             // connections that wait for the port
  std::map<Sight, ViewTree> trees_;  // of the sights that programs have, and of that without identity
  uint32_t exports_ = 0;             // connections with an exported tree
  uint32_t tree_watchers_ = 0;       // connections that watch a tree
  Milliseconds next_export_ = 0;
  uint64_t refused_requests_ = 0;
  uint64_t malformed_ = 0;
  uint64_t refused_connections_ = 0;
  Connection connections_[kMaxConnections];
};

}  // namespace dapple::dappled
