// The trigger's own list of one ROB: whoever comes first decodes it, once for all; each reader takes what it has room for.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "base/spsc_ring.h"
#include "readout/sequence/trigger_book.h"
#include "rodeo/input.h"
#include "rodeo/trigger.h"

namespace rodeo::readout {

/// Any thread, each for a reader of its own. What is decoded is read without a lock; who finds nothing decodes on, or waits for the peer that does:
/// what follows may need what it reads. What there is no room for stays in the input's memory.
class TriggerList {
 public:
  /// Readers may be `entries` (a power of two) apart.
  TriggerList(std::unique_ptr<DataStream> stream, std::unique_ptr<TriggerExtractor> extractor, std::size_t readers,
              std::size_t entries);

  /// What the reader has not taken, at least a part of it; nothing if the list holds no more for now. Waits while another is as far behind as
  /// the list reaches: so the reader's data wait for it, and nothing is lost.
  std::span<const ListedTrigger> unread(std::size_t reader);

  void take(std::size_t reader, std::size_t count) { taken_[reader].count.fetch_add(count, std::memory_order_release); }

  /// The list is read no further: unread() is empty and blocks no reader. Any reader may call it, for all.
  void give_up() { given_up_.store(true, std::memory_order_release); }

  /// The reader is waited for no more.
  void leave(std::size_t reader) { taken_[reader].count.store(kGone, std::memory_order_release); }

 private:
  static constexpr std::uint32_t kBatch = 64;
  static constexpr std::uint64_t kGone = ~std::uint64_t{0};
  struct alignas(base::kCacheLine) Taken {
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
  const std::unique_ptr<Taken[]> taken_;
  std::atomic<std::uint64_t> end_{0};  // so many are decoded
  std::mutex mutex_;                   // of what follows
  Page* page_ = nullptr;
  std::size_t run_ = 0;
  std::uint32_t at_ = 0;  // in the run
  std::array<std::uint32_t, kBatch> ids_{};
  std::array<std::uint16_t, kBatch> bcids_{};
};

}  // namespace rodeo::readout
