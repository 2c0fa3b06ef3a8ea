// The parts of a Publisher. publisher.cpp fills and sends pages; publisher_clients.cpp serves the events and messages of
// subscribers.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/arena.h"
#include "base/counters.h"
#include "transport/connection_table.h"
#include "transport/control_socket.h"
#include "transport/fabric.h"
#include "transport/link_counters.h"
#include "transport/listener.h"
#include "transport/publisher.h"
#include "transport/subscription.h"

namespace rodeo::transport {

inline constexpr std::uint64_t kLookNs = 1'000'000;  // interval between two looks at sockets

/// In the order of kPublisherCounters.
enum class PublisherCounter : std::uint8_t {
  chunks_wanted,
  chunks_published,
  no_subscriber,
  undelivered,
  monitor_chunks_dropped,
  pages_sent,
  pages_full,  // the first of the reasons; these have the order of Flush
  pages_by_time,
  pages_of_clock,
  pages_at_end,
  pages_unbuffered,
  bytes_sent,
  waits,
  refused_peers,
  refused_version,
  refused_secret,
  refused_unreadable,
  wanted_bytes,
  no_subscriber_bytes,
  count
};
static_assert(kPublisherCounters.size() == static_cast<std::size_t>(PublisherCounter::count));

/// A subscription that has a connection or waits for one.
struct Client {
  enum class State : std::uint8_t {
    connecting,  ///< accepted; waits for the fabric's connection
    flowing,
    cut,      ///< the fabric's connection is gone; reads the subscriber's last messages
    leaving,  ///< END was sent; waits until the subscriber closes
    held,     ///< the connection is gone; data wait for the next one
    gone,
  };
  base::Arena memory;
  Subscription subscription;
  State state = State::connecting;
  ControlSocket socket = {};
  FabricPort* port = nullptr;
  FabricPort::Connection connection = 0;
  std::uint64_t credit = 0;  // limit of pages on this connection
  std::uint64_t sent = 0;
  std::uint64_t under_way = 0;
  std::uint64_t opened_ns = 0;  // the time at which the open page got its first run
  std::uint64_t last_page_ns = 0;
  std::uint64_t connecting_since_ns = 0;
  std::uint64_t away_since_ns = 0;  // 0 while data flow, and until the first look after that
  bool flowed = false;              // data have flowed in this session
  std::uint64_t bytes = 0;
  bool leaves = false;  // the subscriber asked for the end
  std::uint64_t waits = 0;
  std::uint64_t had_run = 0;     // number of the last run that is completely in its pages
  formats::RunPlace place = {};  // position in the run that is being appended
  std::string peer = {};
};

/// Sums over all subscriptions, present and gone.
struct Totals {
  std::uint64_t dropped = 0;
  std::uint64_t published = 0;
  FlushCounts flushes{};

  void add(const Subscription& of) {
    dropped += of.dropped_chunks();
    published += of.chunks();
    for (std::size_t i = 0; i < flushes.size(); ++i) flushes[i] += of.flushes()[i];
  }
};

struct Publisher::Inside {
  using Counter = PublisherCounter;
  using State = Client::State;
  enum class Demand : std::uint8_t { none, monitor, data };
  struct Target {
    Client* client;
    std::uint16_t position;
  };

  Inside(PublisherSettings of, std::span<const Fid> all, bool trigger_list);

  // ---- runs and pages: publisher.cpp

  bool publish(std::span<const ChunkRun> runs);
  LinkTally give_up(std::span<const ChunkRun> runs);
  std::uint32_t end_run_in_hand(LinkIndex link);
  const Client* waits_for() const;
  void progress();
  void handle_events();
  void serve_new_peers();
  void send(Client& client);
  static bool runs_short(const Client& client);
  bool is_old(const Client& client) const;
  void close_due_page(Client& client);
  void send_end(Client& client);

  // ---- subscribers: publisher_clients.cpp

  Result<void> on_subscribe(ControlSocket& socket, formats::ControlSubscribe wish);
  void on_restart(const formats::ControlSubscribe& wish);
  void on_event(Client& client, const FabricPort::Event& event);
  Result<void> on_message(Client& client, const formats::ControlMessage& message);
  void on_time(Client& client);
  void on_fabric_broken(Client& client);
  void on_broken(Client& client, std::string_view why);
  Result<void> resume(Client& client, formats::ControlSubscribe wish);
  Result<Client*> begin(formats::ControlSubscribe wish);
  Result<void> connect(Client& client, bool resumed);
  void read(Client& client);
  void end(Client& client, State next);
  void retarget();
  static Subscriber seen(const Client& client);
  void take_snapshot();

  PublisherSettings settings;
  const bool flushes_between_looks = settings.flush < std::chrono::nanoseconds{kLookNs};
  std::vector<Fid> links;
  std::unordered_map<Fid, LinkIndex> index;
  Listener listener;  // outlives the clients' connections, which use its ports
  ConnectionTable<Client> connections;
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<Subscriber> departed;  // sorted by time; the latest is the last

  std::vector<std::vector<Target>> targets;  // subscribers of each link
  std::vector<LinkCounters> link_counters;
  std::vector<std::uint8_t> begun;  // for each link: true if the last run ended in the middle of a chunk
  std::vector<Demand> demand;
  std::uint64_t demand_changes = 0;
  bool demand_is_old = false;  // the demand is computed again when no loop over the clients is active

  std::size_t at_run = 0;           // run at which publish() stopped
  std::uint64_t run_number = 0;     // number of the present or last run of publish()
  std::optional<ChunkRun> in_hand;  // the run that only some subscribers have yet
  std::uint32_t in_pages = 0;       // chunks of that run that at least one subscriber has

  std::uint64_t clock_ns = 0;
  std::uint64_t now_ns = 0;
  std::uint64_t looked_ns = 0;
  std::uint64_t snapshot_ns = 0;
  bool ending = false;
  Totals gone_totals;

  base::CounterBlock<PublisherCounter> counters;
  mutable std::mutex snapshot_lock;
  std::vector<Subscriber> snapshot;
};

}  // namespace rodeo::transport
