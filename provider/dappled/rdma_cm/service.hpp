// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// SPDX-FileCopyrightText: The dapple authors
//
// The kernel's half of rdma_cm for all channels: commands of <rdma/rdma_user_cm.h> and datagrams of connection
// management go in, answers, events and datagrams come out. Commands behave as those of the kernel's ucma and cma do,
// as far as librdmacm uses them without AF_IB. Confined to one thread; makes no system call itself.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "provider/dappled/rdma_cm/ids/id.hpp"
#include "provider/dappled/rdma_cm/ids/id_table.hpp"
#include "provider/dappled/rdma_cm/ids/port_table.hpp"
#include "provider/dappled/rdma_cm/world.hpp"
#include "roce/cm/manager.hpp"
#include "roce/cm/timer_heap.hpp"

namespace dapple::dappled::rdma_cm {

struct JournalEntry;

// Tickets count up and wrap around.
inline bool is_taken(uint32_t ticket, uint32_t taken) {
  return static_cast<int32_t>(taken - ticket) >= 0;
}

struct Settings {
  uint16_t first_port = 32768;  // the ephemeral ones
  uint16_t last_port = 60999;
  bool privileged = false;  // may bind to ports below 1024
};

// The outcome of the restoration of a channel's ids.
struct Restoration {
  int error = 0;                // no memory, or too many ids: ids are missing
  uint32_t lost_listeners = 0;  // another program has got the port: their program has an event
  uint16_t lost_port = 0;       // of one of them
};

class Service final : private cm::Host {
 public:
  // The limit of unread events: a program may cause events again and again without reading them.
  static constexpr uint32_t kMaxUnread = 65536;
  static constexpr uint32_t kMaxMemberships = 4096;
  static constexpr size_t kReasonSize = sizeof(soft::ErrorReply::line);
  static constexpr uint32_t kMaxBacklog = IdState::kMaxBacklog;
  // Within this time, the members of a dappled that died connect to the next one.
  static constexpr Time kArrival = 3'000'000'000;

  // nullptr without memory. The world outlives the service.
  static std::unique_ptr<Service> create(World& world, const Settings& settings);
  // The owner has closed all channels.
  ~Service() = default;

  // The numbers of removed unread events whose messages were sent. Such a message is one byte, or contains the event
  // itself.
  struct Removed {
    uint32_t bytes = 0;
    uint32_t events = 0;
    void count(const Event& event) {
      if (event.sent) (event.ticket == 0 ? bytes : events)++;
    }
  };

  // The outcome of a command. `response` is room for the answer, and `length` becomes the answer's length. `removed`
  // counts the unread events that the command has removed. `ahead` becomes the id about which the program will ask
  // next, or stays 0. `reason` is an error's, as soft::Refusal has it, until the next command.
  struct Answer {
    std::span<uint8_t> response;
    size_t length = 0;
    Removed removed = {};
    uint32_t ahead = 0;
    const char* reason = "";
  };
  // Processes have taken the events up to this ticket out of their messages.
  void take(Channel& channel, uint32_t ticket);
  // Carries out a program's command. 0 or an errno. `source` is MIGRATE_ID's other channel, or null. Any bytes may be
  // hostile. A command that comes with the same token, not 0, after restore() is the same one again.
  int command(Time now, Channel& channel, Channel* source, std::span<const uint8_t> bytes, Answer& answer,
              uint32_t token = 0);
  // Tells whether answers about the id go along with this event.
  static bool asks_next(EventKind kind);
  // Writes the answers to the next questions about this id (soft::CmAnswerAhead). Returns their length, 0 for none.
  size_t answer_ahead(Time now, Channel& channel, uint32_t id, std::span<uint8_t> room);
  // Destroys the channel's ids.
  void close(Time now, Channel& channel);

  // Devices have come, changed or gone.
  void refresh_devices();

  // Restores an id from the journal of a dappled that has died. The channel is new, and its entries come in order. An
  // entry that is malformed or contradicts others is ignored. Listeners listen and connections stay; a handshake ends.
  // Events up to the ticket channel.taken have been read. If something is lost, its program gets an event, or an errno
  // from its next command, or `outcome` has an error.
  void restore(Time now, Channel& channel, std::span<const std::byte> entry, Restoration& outcome);

  // A datagram that came for QP 1, with `path` as cm::Manager has it.
  void receive(Time now, const cm::Path& path, std::span<const std::byte> mad);
  // A neighbour's link-layer address has become known. advance() does the rest.
  void neighbour_answers(Time now, const Neighbour& neighbour);
  // Reports of neighbours' answers were lost. advance() does the rest.
  void missed_answers(Time now);
  // The time at which advance() has something to do; kNever if nothing waits.
  Time deadline() const;
  void advance(Time now);

  const cm::Manager& manager() const { return *manager_; }
  // Until then, channels of a dappled that has died may come.
  void expect_channels(Time until) { manager_->expect_others(until); }
  uint32_t ids() const { return ids_.size(); }
  // Ids that wait for a neighbour.
  uint32_t resolving() const { return resolving_.size(); }

 private:
  // One command, while it is carried out.
  struct Call {
    Time now;
    Channel& channel;
    Channel* source;
    std::span<const uint8_t> in;     // behind the command's header
    std::span<const uint8_t> extra;  // behind the command's struct
    size_t room;                     // for the answer
    Answer& answer;
    uint32_t token;
    CmId* changed = nullptr;
  };
  using Handler = int (Service::*)(Call& call);

  Service(World& world, const Settings& settings)
      : world_(world),
        settings_(settings),
        ids_(static_cast<uint32_t>(world.random())),
        ports_(settings.first_port, settings.last_port),
        next_membership_(static_cast<uint32_t>(world.random())) {}

  // service.cpp
  static Handler handler_of(uint32_t command);
  template <class Command>
  static bool read(const Call& call, Command& command, size_t least = sizeof(Command));
  template <class Response>
  static int write(Call& call, const Response& response, size_t least = sizeof(Response));
  // 0 or an errno. find() prepares for a change of the id: it notes the id for the journal and recognises a repeated
  // command. look_up() is for commands that only read the id.
  int look_up(const Channel& channel, uint32_t number, CmId*& id) const;
  int find(Call& call, uint32_t number, CmId*& id);
  int find_with_device(Call& call, uint32_t number, CmId*& id);
  // Asserts the conditions that hold between two calls. An id's are asserted when it is written to the journal.
  void assert_consistent() const;

  // refusals.cpp. refuse() keeps the reason for the answer and returns `error`; the text is as that of soft::Refusal.
  // The other functions are for reasons that several commands have.
  [[gnu::format(printf, 3, 4)]] int refuse(int error, const char* format, ...);
  int refuse_malformed();
  int refuse_room();
  int refuse_number(int error, uint32_t number);
  int refuse_without_device(const CmId& id);
  int refuse_unconnected(const CmId& id);
  int refuse_family(const sockaddr_in6& address);
  int refuse_port(int error, const CmId& id);
  int refuse_route(int error, const CmId& id);
  int refuse_unread();
  int refuse_private_data(size_t size, size_t most);
  int refuse_option(uint32_t level, uint32_t name);
  int refuse_size(const char* option, size_t expected, size_t size);
  int refuse_late(const char* option, const CmId& id);
  // 0 for kOk.
  int refuse_by(cm::Status status);

  // lifecycle.cpp
  int create_id(Call& call);
  int destroy_id(Call& call);
  int migrate_id(Call& call);
  static void renew_ticket(Event& event, uint32_t ticket);
  void move(CmId& id, Channel& channel);
  CmId* add_id(Channel& channel, uint16_t port_space, uint8_t qp_type);
  uint32_t destroy(Time now, CmId& id, Removed& removed);

  // addresses.cpp
  int bind_ip(Call& call);
  int resolve_ip(Call& call);
  int resolve_route(Call& call);
  int resolve_ib_service(Call& call);
  int bind(CmId& id, const Address& address);
  bool attach(CmId& id, const Address& address) const;
  void make_route(CmId& id) const;

  // resolution.cpp
  int resolve(Time now, CmId& id, uint32_t timeout_ms);
  bool needs_neighbour(const Address& destination) const;
  int find_path(CmId& id, Address& source);
  void look_later(Time now, CmId& id);
  void look_again(Time now, CmId& id);
  void finish_resolving(CmId& id, const Address& source);
  template <class Condition>
  void make_due(Time now, Condition condition);

  // connections.cpp
  int connect(Call& call);
  int listen(Call& call);
  int start_listening(CmId& id);
  int accept(Call& call);
  int reject(Call& call);
  int disconnect(Call& call);
  int notify(Call& call);
  int connect_reliably(Call& call, CmId& id, const rdma_ucm_conn_param& parameters, cm::Ece ece);
  int connect_datagrams(Call& call, CmId& id, const rdma_ucm_conn_param& parameters);
  int accept_request(Call& call, CmId& id, const rdma_ucm_conn_param& parameters, cm::Ece ece);
  int answer_datagrams(Call& call, CmId& id, cm::SidrStatus status, std::span<const uint8_t> private_data);
  cm::Path path_of(const CmId& id) const;

  // answers_ahead.cpp
  template <class Command>
  size_t answer_one(Time now, Channel& channel, const Command& command, uint16_t number, uint8_t qp_state,
                    std::span<uint8_t> room);

  // queries.cpp
  int query_route(Call& call);
  int init_qp_attr(Call& call);

  // options.cpp
  int set_option(Call& call);
  int set_id_option(CmId& id, uint32_t name, std::span<const uint8_t> value);
  int set_path(CmId& id, std::span<const uint8_t> value);

  // multicast.cpp
  int join_ip_mcast(Call& call);
  int leave_mcast(Call& call);
  Membership* add_membership(CmId& id, uint32_t number, uint64_t uid, const Address& group);
  void report_join(Membership& membership);
  Removed leave(Membership& membership);

  // events.cpp
  int get_event(Call& call);
  int write_cm_event(Call& call);
  Event* add_event(CmId& id, EventKind kind, int status = 0);
  void append(Channel& channel, Event& event);
  static uint32_t next_ticket(Channel& channel);
  void drop(Channel& channel, Event& event);
  static void remove(Channel& channel, Event& event);

  // reports.cpp: the manager's events.
  void send(const cm::Path& path, const cm::Mad& mad) override { world_.send(path, mad); }
  uint64_t random() override { return world_.random(); }
  void event(const cm::Event& event) override;
  void report_response(CmId& id, const cm::Event& event);
  void report_reply(CmId& id, const cm::Event& event);
  // The manager must not be called while it reports; settle() does this afterwards.
  enum class Refusal : uint8_t { kNone, kIgnored, kRejected };
  struct Afterwards {
    cm::Id connection = cm::kNoId;
    Refusal refusal = Refusal::kRejected;
    uint64_t user = 0;
    cm::Id displaced = cm::kNoId;  // another request, which has lost its place in the backlog
  };
  void settle(Time now);

  // requests.cpp
  void report_request(const cm::Event& event);
  static Event* displaceable(const CmId& listener, const Gid& newcomer);
  void discard(CmId& id);
  bool place_request(CmId& id, const CmId& listener, const cm::Event& event);
  static void fill_request(CmId& id, Event& added, const cm::Event& event);

  // journal.cpp
  void note(CmId& id);
  void write_journals();
  void write(CmId& id);
  void forget(CmId& id);

  // restoration.cpp
  // These are false without memory.
  bool resume(Time now, CmId& id, State state, const cm::Saved& saved, Restoration& outcome);
  bool resume_events(CmId& id, std::span<const UnreadEvent> unread);
  bool resume_listening(CmId& id, Restoration& outcome);
  bool resume_memberships(CmId& id, const JournalEntry& entry);
  bool resume_connection(Time now, CmId& id, const cm::Saved& saved);
  bool tell(CmId& id, EventKind kind, int status = 0);
  bool may_be_repeated(const Call& call) const { return call.token != 0 && call.now < call.channel.repeats_until; }
  bool hand_again(Call& call, int& error);
  void end_doubts(Time now);

  World& world_;
  char reason_[kReasonSize] = "";  // of the last command's error
  const Settings settings_;
  IdTable ids_;
  PortTable ports_;
  std::unique_ptr<cm::Manager> manager_;
  std::optional<Afterwards> afterwards_;
  cm::TimerHeap<CmId> resolving_;
  CmId* changed_ = nullptr;  // not yet in the journal
  Time doubts_end_ = roce::kNever;
  uint32_t next_membership_;
  uint32_t membership_count_ = 0;
};

}  // namespace dapple::dappled::rdma_cm
