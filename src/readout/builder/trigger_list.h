// The trigger's own list of one ROB. The first reader decodes an entry for all; each reader takes the entries for which it
// has room.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "base/spsc_ring.h"
#include "readout/sequence/trigger_entries.h"
#include "rodeo/input.h"
#include "rodeo/trigger.h"

namespace rodeo::readout {

/// Any thread, each with its own reader. Decoded entries are read without a lock. A reader that finds no decoded entry
/// decodes the next ones, or waits for a peer that is doing so, because its next steps may need them. Entries without room
/// stay in the input's memory.
class TriggerList {
 public:
  /// Readers may be at most `entries` (a power of two) apart.
  TriggerList(std::unique_ptr<DataStream> stream, std::unique_ptr<TriggerExtractor> extractor, std::size_t readers,
              std::size_t entries);

  /// Entries that the reader has not taken, or a part of them; empty if the list has no more now. Waits while another reader
  /// is behind by the size of the ring: the data of this reader then wait, and nothing is lost.
  std::span<const ListedTrigger> unread(std::size_t reader);

  void consume(std::size_t reader, std::size_t count) {
    consumed_[reader].count.fetch_add(count, std::memory_order_release);
  }

  /// Ends the reading of the list: unread() is then empty and does not block. Any reader may call it, for all readers.
  void give_up() { given_up_.store(true, std::memory_order_release); }

  /// Says that the other readers need not wait for this one any more.
  void remove_reader(std::size_t reader) { consumed_[reader].count.store(kGone, std::memory_order_release); }

 private:
  static constexpr std::uint32_t kBatch = 64;
  static constexpr std::uint64_t kGone = ~std::uint64_t{0};
  struct alignas(base::kCacheLine) Consumed {
    std::atomic<std::uint64_t> count{0};
  };

  bool next_run();
  std::uint64_t room() const;
  void decode(std::uint64_t most);

  const std::unique_ptr<DataStream> stream_;
  const std::unique_ptr<TriggerExtractor> extractor_;
  const std::size_t readers_;
  std::atomic<bool> given_up_{false};
  const std::uint64_t size_;
  const std::unique_ptr<ListedTrigger[]> ring_;
  const std::unique_ptr<Consumed[]> consumed_;
  std::atomic<std::uint64_t> end_{0};  // number of decoded entries
  std::mutex mutex_;                   // protects the members below
  Page* page_ = nullptr;
  std::size_t run_ = 0;
  std::uint32_t at_ = 0;  // position within the run
  std::array<std::uint32_t, kBatch> ids_{};
  std::array<std::uint16_t, kBatch> bcids_{};
};

}  // namespace rodeo::readout
