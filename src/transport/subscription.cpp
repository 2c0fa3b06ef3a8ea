#include "transport/subscription.h"

#include <algorithm>

namespace rodeo::transport {

PageRing::PageRing(std::span<std::byte> memory, std::size_t page_bytes)
    : memory_(memory),
      page_bytes_(page_bytes),
      bytes_(memory.size() / page_bytes),
      chunks_(bytes_.size()),
      on_network_(bytes_.size()) {}

formats::NetworkPageWriter* PageRing::writer() {
  if (!writer_) {
    if (closed_ - done_ == slots()) return nullptr;
    writer_.emplace(memory_.subspan(closed_ % slots() * page_bytes_, page_bytes_));
  }
  return &*writer_;
}

void PageRing::close(std::uint64_t clock_ns, std::uint64_t chunks) {
  const std::size_t slot = closed_ % slots();
  chunks_[slot] = chunks;
  bytes_[slot] = static_cast<std::uint32_t>(writer_->finish(closed_, clock_ns).size());
  writer_.reset();
  ++closed_;
}

std::optional<PageRing::Full> PageRing::next() const {
  if (given_ == closed_) return std::nullopt;
  const auto slot = static_cast<std::uint32_t>(given_ % slots());
  return Full{slot, bytes_[slot]};
}

void PageRing::sending() {
  on_network_[given_ % slots()] = true;
  ++given_;
  most_given_ = std::max(most_given_, given_);
}

void PageRing::sent(std::uint32_t slot) {
  on_network_[slot] = false;
  free_slots();
}

bool PageRing::taken(std::uint64_t pages) {
  if (pages > most_given_) return false;
  taken_ = std::max(taken_, pages);
  free_slots();
  return true;
}

void PageRing::unsend() {
  on_network_.assign(on_network_.size(), false);
  free_slots();
  given_ = done_;
}

// The acknowledgement of a page may come before the event `sent`: the page may still be on the network.
void PageRing::free_slots() {
  for (; done_ < taken_ && !on_network_[done_ % slots()]; ++done_) taken_chunks_ = chunks_[done_ % slots()];
  given_ = std::max(given_, done_);
}

Subscription::Subscription(formats::ControlSubscribe wish, std::vector<LinkIndex> links, std::span<std::byte> memory,
                           std::size_t page_bytes, std::span<const std::uint32_t> counts,
                           std::span<const std::uint8_t> begun, std::uint64_t clock_ns)
    : wish_(std::move(wish)),
      links_(std::move(links)),
      ring_(memory, page_bytes),
      clock_begin_(clock_ns),
      clock_ns_(clock_ns) {
  for (const LinkIndex link : links_)
    states_.push_back({.base = counts[link] + begun[link], .skips_rest = begun[link] != 0});
}

bool Subscription::append(std::size_t position, std::uint32_t count, const ChunkRun& run, formats::RunPlace& from) {
  State& state = states_[position];
  if (state.skips_rest) {
    state.skips_rest = run.more_follows;
    return true;
  }
  if (left_) return true;
  for (;;) {
    formats::NetworkPageWriter* const writer = ring_.writer();
    if (writer == nullptr) {
      if (!wish_.monitor) return false;
      // The subscriber counts these chunks too, because it sees a gap before the next run.
      dropped_chunks_ += run.count - from.chunk;
      state.skips_rest = run.more_follows;
      return true;
    }
    const std::uint32_t before = from.chunk;
    const bool whole = writer->append(static_cast<LinkIndex>(position), count - state.base + before, run, from);
    chunks_ += run.more_follows ? 0 : from.chunk - before;
    if (whole) break;
    close(Flush::full);
  }
  if (wish_.unbuffered) close(Flush::unbuffered);
  return true;
}

bool Subscription::close_page(std::uint64_t clock_ns, Flush why) {
  clock_ns_ = clock_ns;
  if (!ring_.has_runs() && why != Flush::clock) return true;
  if (ring_.writer() == nullptr) return false;
  close(why);
  return true;
}

void Subscription::close(Flush why) {
  ring_.close(clock_ns_ - clock_begin_, chunks_);
  ++flushes_[static_cast<std::size_t>(why)];
}

}  // namespace rodeo::transport
