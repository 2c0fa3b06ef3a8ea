// The links of one stream. Turns accepted triggers into runs of chunks, in the order in which FELIX blocks would fill.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/counters.h"
#include "formats/provable.h"
#include "input/faults.h"
#include "input/generator_settings.h"
#include "input/paged_stream.h"
#include "input/trigger_history.h"

namespace rodeo::input {

/// The most triggers accepted at once; fewer for many or large links, so that a batch has about 1 MiB of data.
std::uint32_t trigger_batch(const GeneratorSettings& settings);

/// Triggers from one end of a run to the next, for one link.
inline std::uint64_t run_period(const GeneratorSettings& settings) {
  return std::uint64_t{settings.run_length} * settings.stride();
}

/// Each link collects a run of chunks, then sends the whole run. The ends of runs have a random phase per link.
/// Single-threaded.
class LinkFeed {
 public:
  using Counters = base::CounterBlock<GeneratorCounter>;

  /// `positions`: the links of this stream as positions in settings.links. The references must outlive the feed.
  /// Throws SetupError if there is no memory, or less than the links need.
  LinkFeed(const GeneratorSettings& settings, const TriggerHistory& history, Counters& counters,
           std::span<const LinkIndex> positions);

  PagedStream& stream() { return stream_; }

  /// True if the free pages might not hold all pending chunks and one more batch.
  bool busy() { return !stream_.free_at_least(reserve_); }

  /// Sends the runs that end with a trigger of [first, end). Call only after busy() returned false.
  void send(std::uint64_t first, std::uint64_t end);

  /// Sends pending chunks of triggers before `end`; with `last`, also those that lag or wait for a successor.
  /// False if memory ran out on the way: call again.
  bool flush(std::uint64_t end, bool last);

  /// Sends late chunks that are due; with `last`, all late chunks. False if memory ran out.
  bool send_late(std::uint64_t now_ns, bool last);

  bool holds_late_chunks() const { return late_count_ > 0; }

  /// Free pages needed to accept a batch.
  std::size_t reserve() const { return reserve_; }

 private:
  static constexpr std::uint64_t kNoTrigger = ~std::uint64_t{0};

  struct Link {
    std::uint64_t next = 0;               // first trigger not sent
    std::uint64_t withheld = kNoTrigger;  // trigger of a chunk that is sent after its successor
    L1Id withheld_l1id;
    std::uint32_t link_id = 0;
    std::uint32_t lag = 0;
    std::int64_t position = 0;  // position in settings.links
  };
  struct LateChunk {
    std::uint64_t due_ns = 0;
    std::uint64_t trigger = 0;
    L1Id l1id;
    LinkIndex index = 0;
  };

  bool send_link(LinkIndex index, std::uint64_t end) {
    Link& link = links_[index];
    return plain_ || quiet(link, end) ? send_plain(index, link, end) : send_each(index, link, end);
  }
  /// True if all chunks that the link has to send before `end` are free of faults.
  bool quiet(const Link& link, std::uint64_t end) const {
    return equal_ && link.withheld == kNoTrigger && !plan_.off_at_times(link.position) &&
           plan_.quiet(link.link_id, link.next, end, step_);
  }
  bool send_plain(LinkIndex index, Link& link, std::uint64_t end);
  bool send_each(LinkIndex index, Link& link, std::uint64_t end);
  bool send_one(LinkIndex index, Link& link, std::uint64_t trigger);
  void write(LinkIndex index, const Link& link, std::uint64_t trigger, L1Id l1id, GeneratorCounter fault);
  void damage(std::span<std::byte> chunk, const Link& link, std::uint64_t trigger, L1Id l1id, GeneratorCounter fault);
  bool hold_back(LinkIndex index, std::uint64_t trigger, L1Id l1id);
  std::uint32_t size_of(std::uint32_t link_id, std::uint64_t trigger) const;

  const GeneratorSettings& settings_;
  const TriggerHistory& history_;
  Counters& counters_;
  const formats::Provable provable_;
  const FaultPlan plan_;
  const std::uint64_t step_;            // distance of a link's triggers
  const std::uint64_t period_;          // triggers between ends of runs
  const bool equal_;                    // all chunks have one size, every trigger has a chunk, and there is no CRC
  const bool plain_;                    // equal_ is true, and there are no faults
  const std::uint64_t occupied_below_;  // threshold out of 2^53

  std::vector<Link> links_;
  std::vector<std::uint32_t> bucket_begin_;  // links whose run ends with a trigger, by trigger % period
  std::vector<LinkIndex> bucket_links_;

  std::vector<LateChunk> late_;  // ring of late chunks
  std::size_t late_head_ = 0;
  std::size_t late_count_ = 0;

  std::size_t reserve_ = 0;
  PagedStream stream_;
};

}  // namespace rodeo::input
