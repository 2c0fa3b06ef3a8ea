// An input of prepared pages in a cycle. A benchmark spends its time on reading the memory only.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/arena.h"
#include "formats/provable.h"
#include "rodeo/input.h"

namespace rodeo::bench {

struct PreparedSettings {
  std::uint32_t links = 192;
  std::uint32_t groups = 0;  ///< FULL mode: links of a group carry its events in turn; 0: every link carries every event
  std::uint32_t chunk_bytes = 40;
  std::uint32_t run_length = 24;  ///< chunks in a run; 1: links interleaved chunk by chunk
  bool blocks = false;            ///< raw FELIX blocks, decoded when polled, instead of runs
  bool crc = false;               ///< chunks end in a CRC-32
  std::uint64_t seed = 1;
  std::size_t least_bytes = 96 << 20;  ///< least bytes of payload in a cycle
  std::size_t page_bytes = 64 << 10;   ///< bytes of payload in a page
};

/// Ids and turns of links continue from one cycle to the next: the number of events in a cycle is a multiple of the range of
/// the chunks' L1 ids, and of the links in a group. Links have random phases: the run boundaries of each link differ, and
/// its data arrive a random part of a run later.
class PreparedInput final : public DataInput {
 public:
  explicit PreparedInput(const PreparedSettings& settings);
  ~PreparedInput() override;

  std::span<const Fid> links() const override { return fids_; }
  std::unique_ptr<DataStream> open(std::span<const Fid> links) override;
  void start() override {}
  void stop() override { stopped_.store(true, std::memory_order_relaxed); }

  /// The number of bits in the chunks' L1 ids.
  std::uint32_t l1id_bits() const { return bits_; }
  std::uint32_t cycle_events() const { return events_; }
  const formats::Provable& provable() const { return provable_; }
  std::uint32_t group_of(std::size_t link) const;
  /// The number of links that take turns: 1 if every link carries every event.
  std::uint32_t turn() const;

  /// Payload memory of the streams that are open, for ceilings.
  std::span<const std::span<const std::byte>> memory() const { return memory_; }
  std::size_t bytes() const;
  std::size_t page_bytes() const { return settings_.page_bytes; }

  /// True if `chunk` is the prepared chunk of this event.
  bool matches(std::span<const std::byte> chunk, std::uint32_t link_id, L1Id l1id) const;

 private:
  class RunStream;
  class BlockStream;

  /// The L1 id in the chunks of an event of the cycle.
  L1Id carried(std::uint32_t event) const { return L1Id{event & ((1U << bits_) - 1)}; }

  const PreparedSettings settings_;
  const formats::Provable provable_;
  std::uint32_t bits_ = 0;
  std::uint32_t events_ = 0;
  std::vector<Fid> fids_;
  std::vector<std::span<const std::byte>> memory_;
  std::atomic<bool> stopped_{false};
};

}  // namespace rodeo::bench
