// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// rdma_cm's channels as programs have them: descriptors, messages (provider/protocol/cm_messages.hpp), and the network
// behind the service. Only the server's thread uses it.
#pragma once

#include <memory>

#include "provider/dappled/network/device_table.hpp"
#include "provider/dappled/network/gid_orders.hpp"
#include "provider/dappled/network/port_group.hpp"
#include "provider/dappled/rdma_cm/journal_file.hpp"
#include "provider/dappled/rdma_cm/packets/captures.hpp"
#include "provider/dappled/rdma_cm/packets/mad_wire.hpp"
#include "provider/dappled/rdma_cm/packets/neighbours.hpp"
#include "provider/dappled/rdma_cm/service.hpp"
#include "provider/protocol/cm_messages.hpp"
#include "provider/protocol/resource_messages.hpp"
#include "provider/system/owned_fd.hpp"
#include "provider/system/problem.hpp"

namespace dapple::dappled::rdma_cm {

class ChannelServer final : private World, private MadWire::Sink, private soft::PacketTap {
 public:
  static constexpr uint32_t kMaxChannels = 8192;

  // A channel's program.
  struct Program {
    uint32_t process = 0;                  // shown with the channel's ids
    uint32_t gid_order = GidOrders::kOwn;  // the channel uses it, too
    soft::Rails rails;                     // the devices that it sees
  };

  // `devices` is up to date at each call.
  ChannelServer(const DeviceTable& devices, GidOrders& gid_orders) : devices_(devices), gid_orders_(gid_orders) {}
  ~ChannelServer();

  // 0, or an errno.
  int prepare();
  // CLOCK_MONOTONIC in nanoseconds, read once in each pass of the loop: in a virtual machine a read may cost more than
  // the answer to a question.
  Time time() const;
  void begin_pass() { pass_time_ = 0; }
  // Readable when serve() has something to do: channels that were closed, datagrams, neighbours that answer.
  int fd() const { return epoll_.get(); }
  void serve();
  // Call it after all other work of a pass: it handles deadlines and sends the events.
  void advance();
  // Call it when the devices have changed.
  void refresh();
  // True while peers have not yet confirmed the end of connections.
  bool says_farewell() const { return service_ != nullptr && service_->manager().disconnecting() > 0; }
  // The time at which advance() has something to do, in nanoseconds of CLOCK_MONOTONIC; roce::kNever if it has nothing.
  Time deadline() const {
    if (own_count_ > 0) return time();
    return service_ == nullptr ? roce::kNever : service_->deadline();
  }

  // From now on datagrams are received and sent. False on failure.
  bool use(PortGroup& group, soft::SlotCounters* counters, soft::Problem& problem);
  bool has_wire() const { return wire_ != nullptr; }
  // Call it before the group closes its sockets.
  void drop_wire() { wire_.reset(); }

  // Call it when a program comes that another dappled has served: its channels and those of others may follow, and
  // packets may come before them.
  void expect_channels();
  // `end` is dappled's end of the program's pair. `journal` becomes the descriptor of the channel's journal; the
  // channel keeps owning it. 0, or an errno.
  int open(soft::OwnedFd end, const Program& program, soft::CmChannelName& name, int& journal);
  // The same for a channel of a dappled that has died, with its journal, from which the reply's name comes. Does
  // nothing if the channel is already here: a child of fork() restores it, too.
  int restore(soft::OwnedFd end, soft::OwnedFd journal, const Program& program, soft::CmRestoreReply& reply);
  // The reply's header.error is the command's outcome. Returns the reason of an error, or "", until the next command.
  const char* command(const soft::CmCommandRequest& request, soft::CmCommandReply& reply);

  // The program has taken the removed events off its descriptor, so events may follow. Does nothing if the channel is
  // not held.
  void resume(const soft::CmChannelName& name);

  // The files to which the packets of QP 1 are written.
  Captures& captures() { return captures_; }

  uint32_t channels() const { return list_.size(); }
  // Tells whether an id is bound to this entry of a device's GID table.
  bool uses_gid(uint32_t device, uint32_t gid_index) const;
  // The ids on a device: shown_ids.cpp.
  uint32_t count_ids(uint32_t device) const;
  void list_ids(const soft::CmIdsRequest& request, soft::CmIdsReply& reply) const;
  void tell(soft::CmStatus& status) const;  // channel_watchers.cpp

 private:
  struct OpenChannel : Channel {
    soft::CmChannelName name;
    uint32_t number = 0;  // in open_channels_
    Program program;
    OpenChannel* same_bucket = nullptr;
    soft::OwnedFd end;
    JournalFile journal;
    uint32_t epoch = 0;    // of its events' messages
    bool watched = false;  // until its socket has room
    bool held = false;     // nothing is sent until resume()
    bool due = false;      // it is in the list due_
    OpenChannel* next_due = nullptr;
  };

  OpenChannel* find(const soft::CmChannelName& name) const;
  // The service begins with the first channel: most programs have none.
  int have_service();
  int add(std::unique_ptr<OpenChannel> opened, const Program& program);
  Restoration read_journal(OpenChannel& opened);
  void close(OpenChannel& opened);
  void take(OpenChannel& opened);
  void add_answers(OpenChannel& opened, uint32_t id, soft::CmCommandReply& reply);
  bool send_event(OpenChannel& opened, Event& event);
  void send_events(OpenChannel& opened);
  void send_all_events();
  void watch(OpenChannel& opened, bool writable);
  void watch_neighbours();
  void hear_neighbours();
  bool keep_own(const cm::Path& path, const cm::Mad& mad);
  void receive_own();

  // World
  void send(const cm::Path& path, const cm::Mad& mad) override;
  uint64_t random() override;
  const DeviceTable& devices() override { return devices_; }
  uint32_t gid_index(const CmId& id) override;
  const soft::Rails& rails(const Channel& channel) override;
  int route(const Channel& channel, const Address& destination, Address& source) override;
  int find_neighbour(const Address& source, const Address& destination, Neighbour& neighbour) override;
  int check_own(const Address& address) override;
  bool separates_families() override;
  void wake(Channel& channel) override;
  void write_journal(Channel& channel, uint32_t index, std::span<const std::byte> entry) override;

  // MadWire::Sink
  void arrived(const Gid& local, const Gid& remote, uint32_t netdev_index, std::span<const std::byte> mad) override;

  // soft::PacketTap
  void write(Direction direction, const roce::IcrcAddresses& addresses, uint8_t traffic_class, uint8_t hop_limit,
             std::span<const std::byte> transport) override;

  const DeviceTable& devices_;
  GidOrders& gid_orders_;
  mutable Time pass_time_ = 0;
  soft::OwnedFd epoll_;
  Captures captures_;
  std::unique_ptr<MadWire> wire_;
  // Datagrams to addresses of this host do not leave dappled. rdma_rxe keeps its own inside, too.
  struct OwnDatagram {
    Gid local, remote;  // the receiver's view
    cm::Mad mad;
  };
  static constexpr uint32_t kMaxOwn = 256;
  bool same_host_ = true;
  soft::SlotCounters* counters_ = nullptr;
  OwnDatagram own_[kMaxOwn];
  uint32_t own_first_ = 0;
  uint32_t own_count_ = 0;
  bool sent_to_own_ = false;   // datagrams to an address of this host, not yet received
  NeighbourWatch neighbours_;  // open while an id waits for a neighbour
  std::unique_ptr<Service> service_;
  Time others_until_ = 0;  // of expect_channels()
  List<Channel> list_;
  uint64_t random_[32] = {};
  size_t random_left_ = 0;
  uint32_t next_ = 0;
  OpenChannel* due_ = nullptr;  // channels with new events
  std::unique_ptr<std::unique_ptr<OpenChannel>[]> open_channels_;
  // The channels by their names' keys, chained by same_bucket.
  static constexpr uint32_t kBuckets = 4096;
  OpenChannel* buckets_[kBuckets] = {};
};

}  // namespace dapple::dappled::rdma_cm
