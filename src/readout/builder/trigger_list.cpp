#include "readout/builder/trigger_list.h"

#include <algorithm>

#include "base/thread.h"

namespace rodeo::readout {

TriggerList::TriggerList(std::unique_ptr<DataStream> stream, std::unique_ptr<TriggerExtractor> extractor,
                         std::size_t readers, std::size_t entries)
    : stream_(std::move(stream)),
      extractor_(std::move(extractor)),
      readers_(readers),
      size_(entries),
      ring_(std::make_unique<ListedTrigger[]>(entries)),
      consumed_(std::make_unique<Consumed[]>(readers)) {}

std::span<const ListedTrigger> TriggerList::unread(std::size_t reader) {
  const std::uint64_t consumed = consumed_[reader].count.load(std::memory_order_relaxed);
  base::Backoff backoff;
  while (end_.load(std::memory_order_acquire) == consumed) {
    if (given_up_.load(std::memory_order_acquire)) return {};
    {
      const std::lock_guard lock(mutex_);
      if (end_.load(std::memory_order_relaxed) != consumed) break;
      if (const std::uint64_t most = room(); most != 0) {
        decode(most);
        break;
      }
    }
    backoff.idle();
  }
  const std::uint64_t first = consumed & (size_ - 1);
  return {&ring_[first], std::min(end_.load(std::memory_order_acquire) - consumed, size_ - first)};
}

std::uint64_t TriggerList::room() const {
  const std::uint64_t end = end_.load(std::memory_order_relaxed);
  std::uint64_t least = end;
  for (std::size_t reader = 0; reader < readers_; ++reader)
    least = std::min(least, consumed_[reader].count.load(std::memory_order_acquire));
  return size_ - (end - least);
}

// Makes runs[run_] a run with chunks left at at_; false if the list has no more now.
bool TriggerList::next_run() {
  for (;;) {
    if (page_ == nullptr) {
      if (stream_->poll(page_) != PollStatus::page) {
        page_ = nullptr;
        return false;
      }
      run_ = 0;
      at_ = 0;
    }
    for (; run_ < page_->runs.size(); ++run_, at_ = 0) {
      if (at_ < page_->runs[run_].count) return true;
    }
    page_->drop();
    page_ = nullptr;
  }
}

// Decodes one batch, if the list has data.
void TriggerList::decode(std::uint64_t most) {
  const std::uint64_t end = end_.load(std::memory_order_relaxed);
  while (next_run()) {
    const ChunkRun& run = page_->runs[run_];
    const auto n = static_cast<std::uint32_t>(std::min<std::uint64_t>({most, kBatch, run.count - at_}));
    const std::uint32_t got = std::min(n, extractor_->extract(run, at_, n, ids_.data(), bcids_.data()));
    for (std::uint32_t i = 0; i < got; ++i)
      ring_[(end + i) & (size_ - 1)] = {ids_[i], bcids_[i], extractor_->trigger_type(run.chunk(at_ + i))};
    at_ += got < n ? got + 1 : got;  // skips a chunk that is not a packet
    end_.store(end + got, std::memory_order_release);
    if (got != 0) return;
  }
}

}  // namespace rodeo::readout
