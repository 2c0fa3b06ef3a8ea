#include "card/dma/cru_channel.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <fmt/core.h>

#include "base/thread.h"
#include "card/card_wait.h"

namespace rodeo::card {
namespace {

namespace cru = card_registers::cru;
using cru::reg;
using std::chrono::milliseconds;

constexpr std::uint32_t kMaxDepth = 4096;  // far above the depth of any firmware
constexpr std::chrono::microseconds kSizePatience{1000};
constexpr milliseconds kFlushPatience{200};
constexpr std::chrono::microseconds kFlushLook{500};
constexpr int kQuietLooks = 4;

pci::RegionOperation reading(const card_registers::Register& what, unsigned index) {
  return {.region = what.bar, .offset = what.at(index), .bytes = 4, .write = false, .value = 0};
}
pci::RegionOperation writing(const card_registers::Register& what, unsigned index, std::uint64_t value) {
  return {.region = what.bar, .offset = what.at(index), .bytes = 4, .write = true, .value = value & 0xffffffff};
}

}  // namespace

Result<void> CruChannel::find_links() {
  const auto depth = RODEO_TRY(card_.read(reg("superpage_fifo_depth")));
  depth_ = depth == 0 ? cru::kDefaultFifoDepth : depth;
  if (depth_ > kMaxDepth)
    return std::unexpected(
        Error{"card.misbehaved", fmt::format("the card claims {} descriptors a link", depth_), card_.address().text(),
              "`rodeo card firmware` says whether its firmware is known; a reset or a power cycle may help"});
  std::uint32_t mask = settings_.links;
  if (mask == 0 && settings_.source == DataSource::internal) mask = 1;  // the internal generator feeds link 0
  if (mask == 0) {
    const auto enabled = RODEO_TRY(card_.read(reg("datapath_enable"), card_.endpoint_or_zero()));
    mask = enabled & 0xefff;  // there is no link 12
  }
  links_.clear();
  counts_are_new_ = false;
  for (unsigned id = 0; id < cru::kDmaLinks; ++id) {
    if ((mask >> id & 1) != 0) links_.push_back({.id = id, .queue = FixedQueue<Superpage>(depth_), .high = {}});
  }
  set_capacities(depth_ * std::max<std::size_t>(1, links_.size()), depth_ * std::size_t{16}, depth_ * links_.size());
  return {};
}

Result<void> CruChannel::halt() {
  RODEO_TRY(card_.modify(reg("dma_control"), cru::kDmaFlush, 1));
  RODEO_TRY(card_.modify(reg("user_control"), cru::kRunEnable, 0));
  return {};
}

Result<void> CruChannel::device_open() {
  // A former owner that was killed may have left the card running.
  RODEO_TRY(halt());
  // The card may still have superpages of that owner; the reset of the first start removes them.
  RODEO_TRY(device_silence());
  return find_links();
}

Result<void> CruChannel::device_reset(ResetLevel) {
  RODEO_TRY(card_.write(reg("reset"), cru::kResetGenerator));
  std::this_thread::sleep_for(milliseconds(100));
  RODEO_TRY(card_.write(reg("reset"), cru::kResetCard));
  std::this_thread::sleep_for(milliseconds(100));
  return {};
}

Result<void> CruChannel::device_start() {
  RODEO_TRY(find_links());
  if (links_.empty())
    return std::unexpected(Error{"card.no_links", "no link is enabled in the card", card_.address().text(),
                                 "enable links in its configuration, or name them"});
  if (!uses_links()) {
    const auto debug = RODEO_TRY(card_.read(reg("debug")));
    if (debug == 0) RODEO_TRY(card_.write(reg("debug"), 2));
  }
  RODEO_TRY(card_.write(reg("data_source"), uses_links() ? 0 : 1));
  // Data taking is off before the reset: nothing of an earlier run reaches the new one.
  RODEO_TRY(card_.modify(reg("user_control"), cru::kRunEnable, 0));
  RODEO_TRY(device_reset(ResetLevel::internal));
  RODEO_TRY(card_.write(reg("dma_control"), cru::kDmaStart));
  std::this_thread::sleep_for(milliseconds(10));
  if (uses_links()) RODEO_TRY(card_.modify(reg("user_control"), cru::kRunEnable, 1));
  return {};
}

Result<void> CruChannel::device_stop() {
  auto halted = halt();
  if (!halted) return halted;
  // The card flushes before it answers this read. Counts read before this are too old.
  for (Link& link : links_) link.counted = 0;
  counts_are_new_ = false;
  RODEO_TRY(exchange(false, SIZE_MAX));
  return wait_for_flush();
}

/// Waits for the flush: while superpages come, and for a few polls after the last one.
Result<void> CruChannel::wait_for_flush() {
  CardWait wait(kFlushPatience);
  for (int quiet = 0; quiet < kQuietLooks && !wait.over(); ++quiet) {
    const std::size_t before = device_outstanding();
    if (before == 0) break;
    std::this_thread::sleep_for(kFlushLook);
    for (Link& link : links_) link.counted = 0;
    counts_are_new_ = false;
    RODEO_TRY(exchange(false, SIZE_MAX));
    if (device_outstanding() < before) quiet = -1;
  }
  return {};
}

void CruChannel::device_reclaim() {
  for (Link& link : links_) {
    link.take = link.counted = 0;
    while (!link.queue.empty()) give_back(link.queue.pop());
  }
}

std::size_t CruChannel::device_outstanding() const {
  std::size_t sum = 0;
  for (const Link& link : links_) sum += link.queue.size();
  return sum;
}

void CruChannel::plan_counts() {
  for (const Link& link : links_) {
    if (!link.queue.empty()) operations_.push_back(reading(reg("superpages_done"), link.id));
  }
}

Result<void> CruChannel::apply_counts(std::size_t from) {
  for (; from < operations_.size(); ++from) {
    const auto id =
        static_cast<unsigned>((operations_[from].offset - reg("superpages_done").offset) / reg("superpages_done").stride);
    Link& link = *std::ranges::find(links_, id, &Link::id);
    const auto done = static_cast<std::uint32_t>(operations_[from].value);
    if (done == UINT32_MAX) RODEO_TRY(card_.check_answers());
    link.counted = done - link.done;
    if (link.counted > UINT32_MAX / 2)
      return misbehaved(
          DmaCounter::count_jumps,
          fmt::format("link {} went back from {} finished superpages to {}, as after a reset", link.id, link.done, done));
    if (link.counted > link.queue.size())
      return misbehaved(DmaCounter::count_jumps, fmt::format("link {} says that {} superpages are done, but it has {}",
                                                             link.id, link.counted, link.queue.size()));
  }
  return {};
}

void CruChannel::plan_collection(std::size_t most) {
  const bool batched = card_.function().capabilities().messages;
  collection_.clear();
  for (Link& link : links_) link.take = 0;
  // Take one superpage of each link in turn, so that no link runs ahead.
  for (std::uint32_t round = 0; collection_.size() < most; ++round) {
    const std::size_t before = collection_.size();
    for (Link& link : links_) {
      if (link.counted <= round || collection_.size() == most) continue;
      ++link.take;
      collection_.push_back(&link);
      if (!batched) continue;
      operations_.push_back(reading(reg("superpage_size_fifo"), link.id));
      operations_.push_back(writing(reg("superpage_size_fifo"), link.id, cru::kSizeFifoNext));
    }
    if (collection_.size() == before) return;
  }
}

void CruChannel::plan_pushes() {
  while (!transfer_.empty()) {
    // Choose the link with the fewest superpages; among equals, the first.
    const auto link = std::ranges::min_element(links_, {}, &Link::outstanding);
    if (link == links_.end() || link->queue.room() == 0) return;
    const Superpage superpage = transfer_.pop();
    const std::uint64_t address = *registration_.bus_address(superpage.offset, superpage.bytes);
    // An unchanged high half is not worth a message.
    const auto high = static_cast<std::uint32_t>(address >> 32);
    if (link->high != high || !card_.function().capabilities().messages)
      operations_.push_back(writing(reg("superpage_address_high"), link->id, high));
    link->high = high;
    operations_.push_back(writing(reg("superpage_address_low"), link->id, address));
    operations_.push_back(writing(reg("superpage_push"), link->id, superpage.bytes / cru::kDmaPageBytes));
    link->queue.push(superpage);
    counters_.add(DmaCounter::superpages_pushed);
  }
}

Result<std::uint32_t> CruChannel::read_size_slowly(const Link& link) {
  // A real card may show the count a moment before the size.
  CardWait wait(kSizePatience);
  for (;;) {
    const auto word = card_.read(reg("superpage_size_fifo"), link.id);
    if (!word || cru::kSuperpageIndex.of(*word) == (link.done & 0xff) || wait.over()) return word;
    base::cpu_relax();
  }
}

Result<void> CruChannel::exchange(bool with_pushes, std::size_t most) {
  const bool batched = card_.function().capabilities().messages;
  const bool known = std::ranges::any_of(links_, [](const Link& link) { return link.counted > 0; });
  const bool asked = std::exchange(counts_are_new_, false);
  if (!known && !asked) {
    operations_.clear();
    plan_counts();
    if (!operations_.empty()) RODEO_TRY(card_.function().exchange(operations_));
    RODEO_TRY(apply_counts(0));
  }
  operations_.clear();
  plan_collection(most);
  const bool collects = !operations_.empty();
  if (with_pushes) plan_pushes();
  const std::size_t counts = operations_.size();
  if (collects) plan_counts();
  if (!operations_.empty()) RODEO_TRY(card_.function().exchange(operations_));
  std::size_t next = 0;
  for (Link* const each : collection_) {
    Link& link = *each;
    std::uint32_t word = 0;
    if (batched) {
      word = static_cast<std::uint32_t>(operations_[next].value);
      next += 2;
    } else {
      word = RODEO_TRY(read_size_slowly(link));
      RODEO_TRY(card_.write(reg("superpage_size_fifo"), cru::kSizeFifoNext, link.id));
    }
    if (cru::kSuperpageIndex.of(word) != (link.done & 0xff))
      return misbehaved(DmaCounter::index_mismatches, fmt::format("link {} gave the size of superpage {} in place of {}",
                                                                  link.id, cru::kSuperpageIndex.of(word), link.done & 0xff));
    std::uint32_t bytes = cru::kSuperpageBytes.of(word);
    if (bytes > link.queue.front().bytes)
      return misbehaved(DmaCounter::oversize, fmt::format("link {} says that it wrote {} bytes into a superpage of {}",
                                                          link.id, bytes, link.queue.front().bytes));
    if (bytes == 0) {
      counters_.add(DmaCounter::size_unknown);
      bytes = link.queue.front().bytes;
    }
    ++link.done;
    --link.take;
    --link.counted;
    deliver(link.queue.pop(), bytes, static_cast<int>(link.id));
  }
  if (!collects) return {};
  counts_are_new_ = true;
  return apply_counts(counts);
}

Result<void> CruChannel::device_health(DmaHealth& health) {
  std::vector<pci::RegionOperation> operations;
  for (const Link& link : links_) operations.push_back(reading(reg("fifo_empty_count"), link.id));
  operations.push_back(reading(reg("datapath_dropped_packets"), card_.endpoint_or_zero()));
  operations.push_back(reading(reg("temperature"), 0));
  RODEO_TRY(card_.function().exchange(operations));
  if (std::ranges::find(operations, UINT32_MAX, &pci::RegionOperation::value) != operations.end())
    RODEO_TRY(card_.check_answers());
  for (std::size_t i = 0; i < links_.size(); ++i)
    health.fifo_empty.push_back(static_cast<std::uint32_t>(operations[i].value));
  health.dropped_packets = operations[links_.size()].value;
  health.temperature_celsius = cru::temperature_celsius(static_cast<std::uint32_t>(operations[links_.size() + 1].value));
  return {};
}

}  // namespace rodeo::card
