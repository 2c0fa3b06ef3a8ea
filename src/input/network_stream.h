// Links that come over the network: one stream's, of one or several publishers.
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

/// What a stream has counted; any thread reads.
struct NetworkCounts {
  base::Gauge<std::uint64_t> lost_chunks;  ///< that a publisher had, and that did not come
  base::Gauge<std::uint64_t> cut_chunks;   ///< of which a part came, or perhaps did; delivered as truncated
  base::Gauge<std::uint64_t> cut_bytes;    ///< of these chunks, that came behind what is lost, and are not delivered
  base::Gauge<std::uint64_t> lost_pages;
  base::Gauge<std::uint64_t> repeated_pages;  ///< that came before; not delivered
  base::Gauge<std::uint64_t> bad_pages;       ///< that could not be decoded
  base::Gauge<std::uint64_t> connections;
  base::Gauge<std::uint64_t> cut_off;  ///< sessions that ended without their publisher's word
};

/// Its sources are publishers. Runs point into the memory that the network wrote.
class NetworkStream final : public DataStream, public ChunkLimit {
 public:
  static constexpr std::uint32_t kMostChunkBytes = 64U << 20;

  struct Publisher {
    std::vector<Fid> links;
    std::vector<LinkIndex> indices;  ///< of these links in the stream
    std::string name = {};           ///< empty: whoever has them
  };

  /// `max_chunk_bytes`: up to which its reader joins chunks.
  NetworkStream(const transport::SubscriberSettings& settings, const std::vector<Publisher>& publishers,
                std::uint64_t silence_ns, std::uint32_t max_chunk_bytes = kMostChunkBytes);
  ~NetworkStream() override;

  PollStatus poll(Page*& page) override;
  void release(Page& page) noexcept override;
  /// The publisher that is furthest behind, of those that are heard and not held.
  std::uint64_t clock_ns() const override { return clock_ns_; }
  StreamCounters counters() const override { return delivered_.counters(); }
  double memory_fill() const override;
  std::uint32_t sources() const override { return static_cast<std::uint32_t>(sources_.size()); }
  std::uint32_t source_of(LinkIndex link) const override { return source_of_[link]; }
  bool source_ended(std::uint32_t source) const override { return sources_[source]->ended; }
  void hold(std::uint32_t source, bool held) override;
  std::uint32_t max_chunk_bytes() const override { return max_chunk_bytes_; }
  bool delivers_parts() const override { return true; }

  /// A publisher that has refused for so long, and would go on to, is a failure of the input; for a second at least, so that each that may have the links
  /// is asked. Before the first poll().
  void give_up_after(std::chrono::nanoseconds refused) {
    give_up_ns_ = static_cast<std::uint64_t>(std::max<std::chrono::nanoseconds>(refused, std::chrono::seconds{1}).count());
  }
  /// Which one refuses, and why; empty while all is well, unchanged once it is said. Any thread.
  std::string failure() const {
    const std::lock_guard lock(told_mutex_);
    return failure_;
  }

  /// Any thread.
  void stop() { stopping_.store(true, std::memory_order_relaxed); }
  const NetworkCounts& counts() const { return counts_; }
  /// What the processes of its publishers have lost of any link, as they have said with the end. Any thread.
  std::vector<NamedCounter> losses() const {
    const std::lock_guard lock(told_mutex_);
    return losses_;
  }
  /// To each of its publishers there is a connection, or has been one. Any thread.
  bool connected() const { return connected_.load(std::memory_order_relaxed); }
  /// The worker that polls.
  const transport::Subscriber& subscriber(std::uint32_t source) const;

 private:
  struct Source;
  struct NetworkPage : Page {
    NetworkPage(NetworkStream& of, Source& from, std::size_t links, std::size_t page_bytes);
    formats::NetworkPageReader reader;
    std::vector<ChunkRun> delivered;
    Source* source;
    std::uint32_t slot = 0;
    bool of_network = true;  // its memory is a slot's
    NetworkPage* next_free = nullptr;
  };
  /// What has come of a link.
  struct LinkState {
    std::uint32_t count = 0;
    bool in_chunk = false;    // the last run has more to follow
    bool skips_rest = false;  // of a chunk that was cut
    bool in_doubt = false;    // pages were lost: the next part may be of a chunk that began in them
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
    std::vector<LinkState> links;   // by position in the subscription
    std::deque<NetworkPage> pages;  // one a slot
    std::size_t page_bytes = 0;
    std::uint64_t session = 0;
    std::uint64_t next_page = 0;
    std::uint64_t clock_base_ns = 0;
    std::uint64_t clock_ns = 0;
    std::uint64_t clock_lead_ns = 0;   // that does not count: gained while it was held
    base::Gauge<std::uint32_t> out;    // pages that somebody has
    base::Gauge<std::uint32_t> slots;  // of which there are so many; memory_fill() is any thread's
    std::uint64_t refused_since_ns = 0;
    std::optional<NetworkPage> last = {};  // for the ends of chunks whose rest never came
    bool held = false;
    bool ended = false;
  };

  bool deliver(Source& source, Page*& out);
  bool read(Source& source, NetworkPage& page, const transport::Subscriber::Received& received);
  void add_run(Source& source, NetworkPage& page, ChunkRun run, std::uint32_t count, bool pages_lost);
  void cut(Source& source, NetworkPage& page, std::size_t position);
  bool cut_last(Source& source, Page*& out);
  void take_back();
  void look_around(std::uint64_t now_ns);
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
