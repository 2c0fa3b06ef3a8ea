// Pages made beforehand and cycled: an input that costs a benchmark nothing but the memory it reads.
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
  std::size_t least_bytes = 96 << 20;  ///< payload to cycle through
  std::size_t page_bytes = 64 << 10;   ///< payload in a page
};

/// When the pages come round again, ids and turns of links run on: a cycle has a multiple of as many events as the L1 ids of the chunks count, and
/// of as many as a group has links. Links arrive with random phase: each link's run boundaries lie elsewhere, and its data a random part of a run later.
class PreparedInput final : public DataInput {
 public:
  explicit PreparedInput(const PreparedSettings& settings);
  ~PreparedInput() override;

  std::span<const Fid> links() const override { return fids_; }
  std::unique_ptr<DataStream> open(std::span<const Fid> links) override;
  void start() override {}
  void stop() override { stopped_.store(true, std::memory_order_relaxed); }

  /// Bits of the L1 id that chunks carry.
  std::uint32_t l1id_bits() const { return bits_; }
  std::uint32_t cycle_events() const { return events_; }
  const formats::Provable& provable() const { return provable_; }
  std::uint32_t group_of(std::size_t link) const;
  /// Links that take turns: 1 where every link carries every event.
  std::uint32_t turn() const;

  /// Payload memory of the streams opened so far, for ceilings.
  std::span<const std::span<const std::byte>> memory() const { return memory_; }
  std::size_t bytes() const;
  std::size_t page_bytes() const { return settings_.page_bytes; }

  /// The chunk as it was prepared for this event: true if `chunk` is it.
  bool matches(std::span<const std::byte> chunk, std::uint32_t link_id, L1Id l1id) const;

 private:
  class RunStream;
  class BlockStream;

  /// The L1 id that chunks of an event of the cycle carry.
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
