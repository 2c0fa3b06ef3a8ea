// Links over the network: one stream reads from one or several publishers.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "formats/network_page.h"
#include "input/chunk_limit.h"
#include "input/delivered.h"
#include "input/free_list.h"
#include "rodeo/input.h"
#include "transport/subscriber.h"

namespace rodeo::input {

/// Counts of a stream; any thread may read.
struct NetworkCounts {
  base::Gauge<std::uint64_t> lost_chunks;  ///< chunks that a publisher sent and that did not arrive
  /// Chunks that arrived in part, or perhaps in part; they are delivered as truncated.
  base::Gauge<std::uint64_t> cut_chunks;
  base::Gauge<std::uint64_t> cut_bytes;  ///< bytes of cut chunks that arrived after the lost part and were not delivered
  base::Gauge<std::uint64_t> lost_pages;
  base::Gauge<std::uint64_t> repeated_pages;  ///< pages that had arrived before; they are not delivered
  base::Gauge<std::uint64_t> bad_pages;       ///< pages that cannot be decoded
  base::Gauge<std::uint64_t> connections;
  base::Gauge<std::uint64_t> cut_off;  ///< sessions that ended without an END of the publisher
};

/// Reads links over the network. Its sources are publishers. Runs point into the memory that the network wrote.
class NetworkStream final : public DataStream, public ChunkLimit {
 public:
  static constexpr std::uint32_t kMostChunkBytes = 64U << 20;

  struct Publisher {
    std::vector<Fid> links;
    std::vector<LinkIndex> indices;  ///< the stream's index of each of these links
    std::string name = {};           ///< empty: any publisher that has the links
  };

  /// `max_chunk_bytes`: limit up to which the reader joins chunks.
  NetworkStream(const transport::SubscriberSettings& settings, const std::vector<Publisher>& publishers,
                std::uint64_t silence_ns, std::uint32_t max_chunk_bytes = kMostChunkBytes);
  ~NetworkStream() override;

  PollStatus poll(Page*& page) override;
  void release(Page& page) noexcept override;
  /// The clock of the slowest publisher, among those that send and are not held.
  std::uint64_t clock_ns() const override { return clock_ns_; }
  StreamCounters counters() const override { return delivered_.counters(); }
  double memory_fill() const override;
  std::uint32_t sources() const override { return static_cast<std::uint32_t>(sources_.size()); }
  std::uint32_t source_of(LinkIndex link) const override { return source_of_[link]; }
  bool source_ended(std::uint32_t source) const override { return sources_[source]->ended; }
  void hold(std::uint32_t source, bool held) override;
  std::uint32_t max_chunk_bytes() const override { return max_chunk_bytes_; }
  bool delivers_parts() const override { return true; }

  /// Sets the time after which a publisher that still refuses is a failure of the input. It is at least one second, so that
  /// each publisher that may have the links is asked. Call before the first poll().
  void give_up_after(std::chrono::nanoseconds refused) {
    give_up_ns_ = static_cast<std::uint64_t>(std::max<std::chrono::nanoseconds>(refused, std::chrono::seconds{1}).count());
  }
  /// The publisher that refuses, and the reason. Empty without a failure; the first failure stays. Any thread.
  std::string failure() const {
    const std::lock_guard lock(told_mutex_);
    return failure_;
  }

  /// Asks for the end. Any thread.
  void stop() { stopping_.store(true, std::memory_order_relaxed); }
  const NetworkCounts& counts() const { return counts_; }
  /// Losses of any link in the publishers' processes, as reported with their END. Any thread.
  std::vector<NamedCounter> losses() const {
    const std::lock_guard lock(told_mutex_);
    return losses_;
  }
  /// True once each publisher has been connected. Any thread.
  bool connected() const { return connected_.load(std::memory_order_relaxed); }
  /// For the worker that polls.
  const transport::Subscriber& subscriber(std::uint32_t source) const;

 private:
  struct Source;
  struct NetworkPage : Page {
    NetworkPage(NetworkStream& of, Source& from, std::size_t links, std::size_t page_bytes);
    formats::NetworkPageReader reader;
    std::vector<ChunkRun> delivered;
    Source* source;
    std::uint32_t slot = 0;
    bool of_network = true;  // false: the page's memory is not a slot of the network
    NetworkPage* next_free = nullptr;
  };
  /// The state of a link's data.
  struct LinkState {
    std::uint32_t count = 0;
    bool in_chunk = false;    // more parts follow the last run
    bool skips_rest = false;  // the rest of a cut chunk is skipped
    bool in_doubt = false;    // pages were lost; the next part may belong to a chunk that began in them
  };
  struct Source {
    Source(const transport::SubscriberSettings& settings, const Publisher& of, transport::FabricPorts& ports)
        : subscriber(named(settings, of.name), of.links, ports), indices(of.indices), links(of.links.size()) {}
    static transport::SubscriberSettings named(transport::SubscriberSettings settings, const std::string& publisher) {
      settings.publisher = publisher;
      return settings;
    }
    transport::Subscriber subscriber;
    std::vector<LinkIndex> indices;
    std::vector<LinkState> links;   // state of each link, by position in the subscription
    std::deque<NetworkPage> pages;  // one page for each slot
    std::size_t page_bytes = 0;
    std::uint64_t session = 0;
    std::uint64_t next_page = 0;
    std::uint64_t clock_base_ns = 0;
    std::uint64_t clock_ns = 0;
    std::uint64_t clock_lead_ns = 0;   // lead that does not count because it was gained while held
    base::Gauge<std::uint32_t> out;    // pages in use by readers
    base::Gauge<std::uint32_t> slots;  // number of slots; memory_fill() reads it on any thread
    std::uint64_t refused_since_ns = 0;
    std::optional<NetworkPage> last = {};  // holds the ends of chunks whose rest never came
    bool held = false;
    bool ended = false;
  };

  bool deliver(Source& source, Page*& out);
  bool read(Source& source, NetworkPage& page, const transport::Subscriber::Received& received);
  void add_run(Source& source, NetworkPage& page, ChunkRun run, std::uint32_t count, bool pages_lost);
  void cut(Source& source, NetworkPage& page, std::size_t position);
  bool cut_last(Source& source, Page*& out);
  void collect_returned();
  void check_publishers(std::uint64_t now_ns);
  void note_refusals(std::uint64_t now_ns);
  void advance_clock(std::uint64_t now_ns);

  const std::uint64_t silence_ns_;
  const std::uint32_t max_chunk_bytes_;
  transport::FabricPorts ports_;
  std::vector<std::unique_ptr<Source>> sources_;
  std::vector<std::uint32_t> source_of_;
  FreeList<NetworkPage> returned_;
  std::size_t turn_ = 0;
  std::uint64_t looked_ns_ = 0;
  std::uint64_t clock_ns_ = 0;
  Delivered delivered_;
  NetworkCounts counts_;
  std::uint64_t give_up_ns_ = 0;  // 0: never
  mutable std::mutex told_mutex_;
  std::vector<NamedCounter> losses_;
  std::string failure_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> connected_{false};
};

}  // namespace rodeo::input
