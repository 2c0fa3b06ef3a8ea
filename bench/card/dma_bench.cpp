#include "bench/card/dma_bench.h"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <limits>
#include <thread>

#include "base/clock.h"
#include "base/latency_histogram.h"
#include "bench/card/ceilings.h"
#include "card/dma/data_taking.h"
#include "card_registers/crorc.h"
#include "card_registers/cru.h"
#include "card_registers/felix.h"

namespace rodeo::bench {

using namespace card;

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr nanoseconds kShortestPause = std::chrono::microseconds{20};
constexpr nanoseconds kLongestPause = milliseconds{10};
constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kQuietBeforeAsking = kSecond / 4;
constexpr nanoseconds kSlice = milliseconds{50};  ///< length of the parts of a long pause; after each, `stop` is checked
/// A card counts as silent after this number of polls without data in a row: the first poll gives it superpages, and a long
/// pause is before the second.
constexpr unsigned kEmptyLooks = 3;

/// Reads a register by a trapped access, which a card that is gone cannot answer.
Result<void> ask(Card& card) {
  const auto word = card.type() == CardType::felix ? card.read64(card_registers::felix::reg("temperature"))
                    : card.type() == CardType::cru ? card.read64(card_registers::cru::reg("firmware_hash"))
                                                   : card.read64(card_registers::crorc::reg("firmware_hash"));
  return word ? Result<void>{} : std::unexpected(word.error());
}

class Run {
 public:
  Run(Card& card, DmaChannel& channel, DataCheck& check, const DmaBenchSettings& settings)
      : card_(card), channel_(channel), check_(check), settings_(settings) {
    const std::size_t count = channel.memory().size() / settings.superpage_bytes;
    pushed_ns_.resize(count);
    free_ = FixedQueue<std::size_t>(count);
    for (std::size_t i = 0; i < count; ++i) free_.push(i);
  }

  Result<DmaBenchResult> run() {
    RODEO_TRY(channel_.start());
    begin_ns_ = last_data_ns_ = told_ns_ = base::steady_now_ns();
    while (!over_) {
      if (auto looked = look(); !looked) {
        (void)channel_.stop();
        return std::unexpected(looked.error());
      }
      if (!over_) rest();
    }
    const std::uint64_t end_ns = base::steady_now_ns();
    const double cpu = base::process_cpu_seconds() - cpu_begin_;
    const std::uint64_t moved = bytes_;
    RODEO_TRY(channel_.stop());
    take_rest();
    if (time_is_over_) RODEO_TRY(data_came_to_the_end());
    return result(end_ns, cpu, moved);
  }

 private:
  Result<void> look() {
    ++looks_;
    RODEO_TRY(channel_.fill());
    const std::uint64_t now = base::steady_now_ns();
    looked_ns_ = now;
    const std::uint64_t before = bytes_;
    while (!enough_) {
      const auto superpage = channel_.pop();
      if (!superpage) break;
      take(*superpage, now);
      free_.push(superpage->offset / settings_.superpage_bytes);
    }
    give(now);
    // Give superpages to the card now, not after a long pause.
    if (settings_.pause && *settings_.pause >= kLongestPause) RODEO_TRY(channel_.fill());
    empty_looks_ = bytes_ > before ? 0 : empty_looks_ + 1;
    if (bytes_ > before) {
      if (first_data_ns_ == 0) {
        first_data_ns_ = now;
        first_bytes_ = bytes_;
        cpu_begin_ = base::process_cpu_seconds();
      }
      last_data_ns_ = now;
    } else
      RODEO_TRY(look_for_life(now));
    if (enough_) over_ = true;
    if (!over_ && settings_.time.count() != 0 && now - begin_ns_ >= static_cast<std::uint64_t>(settings_.time.count()))
      over_ = time_is_over_ = true;
    if (settings_.stop && settings_.stop()) over_ = true;
    tell(now);
    return {};
  }

  void take(const Superpage& superpage, std::uint64_t now) {
    if (superpage.received == 0) return;
    latency_.record(now - pushed_ns_[superpage.offset / settings_.superpage_bytes]);
    const std::span<const std::byte> data = channel_.memory().subspan(superpage.offset, superpage.received);
    check_.check(superpage, data);
    ++superpages_;
    bytes_ += superpage.received;
    const bool full = settings_.sink && !settings_.sink(data);
    enough_ = full || (settings_.bytes != 0 && bytes_ >= settings_.bytes);
  }

  /// Gives superpages to the card in the order of the buffer: a FELIX accepts no other order.
  void give(std::uint64_t now) {
    while (!free_.empty() && channel_.transfer_room() > 0) {
      const std::size_t place = free_.front();
      if (channel_.push({.offset = place * settings_.superpage_bytes, .bytes = settings_.superpage_bytes}) !=
          PushStatus::done)
        return;
      pushed_ns_[place] = now;
      free_.pop();
    }
  }

  Result<void> look_for_life(std::uint64_t now) {
    if (now - last_data_ns_ < kQuietBeforeAsking || now - asked_ns_ < kQuietBeforeAsking) return {};
    asked_ns_ = now;
    RODEO_TRY(ask(card_));
    const std::uint64_t since = std::max(last_data_ns_, begin_ns_);
    if (settings_.patience.count() == 0 || empty_looks_ < kEmptyLooks ||
        now - since < static_cast<std::uint64_t>(settings_.patience.count()))
      return {};
    return std::unexpected(Error{"card.no_data",
                                 fmt::format("no data for {:.1f} s", static_cast<double>(now - since) * 1e-9),
                                 card_.address().text(), advice_without_data(card_)});
  }

  /// Checks that data came until the end of a timed run: some data came, and the last pause is shorter than half the
  /// patience. The end is the time of the last poll, because the check of its data may take long.
  Result<void> data_came_to_the_end() const {
    const std::uint64_t quiet = looked_ns_ - last_data_ns_;
    const auto patience = static_cast<std::uint64_t>(settings_.patience.count());
    if (patience == 0 || (bytes_ != 0 && quiet < patience / 2)) return {};
    const std::string what =
        bytes_ == 0
            ? fmt::format("no data in {:.1f} s", static_cast<double>(looked_ns_ - begin_ns_) * 1e-9)
            : fmt::format("no data for the last {:.1f} of {:.1f} s; {} bytes had come before",
                          static_cast<double>(quiet) * 1e-9, static_cast<double>(looked_ns_ - begin_ns_) * 1e-9, bytes_);
    return std::unexpected(Error{"card.no_data", what, card_.address().text(),
                                 advice_without_data(card_) + "; --patience sets the longest pause"});
  }

  void rest() const {
    nanoseconds pause = kShortestPause;
    if (settings_.pause) {
      pause = *settings_.pause;
    } else if (bytes_ != 0 && last_data_ns_ > begin_ns_) {
      const double rate = static_cast<double>(bytes_) / static_cast<double>(last_data_ns_ - begin_ns_);
      const double eighth = static_cast<double>(channel_.outstanding()) * settings_.superpage_bytes / 8;
      pause = std::clamp(nanoseconds(static_cast<std::int64_t>(eighth / rate)), kShortestPause, kLongestPause);
    }
    if (pause <= kSlice) {
      if (pause.count() > 0) std::this_thread::sleep_for(pause);
      return;
    }
    // The pause is not longer than the run, and ends at a request to stop.
    const std::uint64_t began = base::steady_now_ns();
    std::uint64_t end = began + static_cast<std::uint64_t>(pause.count());
    if (settings_.time.count() != 0) end = std::min(end, begin_ns_ + static_cast<std::uint64_t>(settings_.time.count()));
    for (std::uint64_t now = began; now < end && !(settings_.stop && settings_.stop()); now = base::steady_now_ns())
      std::this_thread::sleep_for(std::min(kSlice, nanoseconds(static_cast<std::int64_t>(end - now))));
  }

  void tell(std::uint64_t now) {
    if (!settings_.progress || now - told_ns_ < kSecond) return;
    DmaBenchProgress progress;
    progress.seconds = static_cast<double>(now - begin_ns_) * 1e-9;
    progress.superpages = superpages_;
    progress.bytes = bytes_;
    progress.bytes_per_second = static_cast<double>(bytes_ - told_bytes_) / (static_cast<double>(now - told_ns_) * 1e-9);
    progress.errors = check_.errors();
    progress.buffer_fill = 1 - static_cast<double>(channel_.outstanding()) / static_cast<double>(pushed_ns_.size());
    if (const auto health = channel_.health()) progress.temperature_celsius = health->temperature_celsius;
    settings_.progress(progress);
    told_ns_ = now;
    told_bytes_ = bytes_;
  }

  /// Takes the superpages that the card had filled at the stop.
  void take_rest() {
    const std::uint64_t now = base::steady_now_ns();
    while (!enough_) {
      const auto superpage = channel_.pop();
      if (!superpage) return;
      take(*superpage, now);
    }
  }

  DmaBenchResult result(std::uint64_t end_ns, double cpu, std::uint64_t bytes_at_end) const {
    DmaBenchResult result;
    result.bytes = bytes_;
    result.superpages = superpages_;
    result.looks = looks_;
    const bool several = last_data_ns_ > first_data_ns_ && first_data_ns_ != 0;
    const std::uint64_t span = several ? end_ns - first_data_ns_ : end_ns - begin_ns_;
    const std::uint64_t moved = several ? bytes_at_end - first_bytes_ : bytes_;
    result.seconds = static_cast<double>(span) * 1e-9;
    if (span != 0) {
      result.bytes_per_second = static_cast<double>(moved) / result.seconds;
      result.driver_cpu_fraction = several ? cpu / result.seconds : 0;
    }
    check_.finish();
    result.counts = check_.counts();
    result.findings = check_.findings();
    result.errors = check_.errors();
    for (std::size_t i = 0; i < kDmaCounters.size(); ++i) {
      const auto counter = static_cast<DmaCounter>(i);
      const std::uint64_t count = channel_.read(counter);
      if (counter > DmaCounter::size_unknown) result.errors += count;
      if (count != 0 && counter > DmaCounter::bytes) result.counts.push_back({std::string(kDmaCounters[i].name), count});
    }
    base::LatencySummary latency;
    latency_.add_to(latency);
    result.superpage_latency_p50_us = static_cast<double>(latency.percentile_ns(0.5)) * 1e-3;
    result.superpage_latency_p99_us = static_cast<double>(latency.percentile_ns(0.99)) * 1e-3;
    return result;
  }

  Card& card_;
  DmaChannel& channel_;
  DataCheck& check_;
  const DmaBenchSettings& settings_;
  FixedQueue<std::size_t> free_;
  std::vector<std::uint64_t> pushed_ns_;
  base::LatencyHistogram latency_;
  bool over_ = false;
  bool time_is_over_ = false;
  bool enough_ = false;  ///< all data were read, or the sink takes no more
  std::uint64_t begin_ns_ = 0;
  std::uint64_t first_data_ns_ = 0;
  std::uint64_t last_data_ns_ = 0;  ///< begin of the last poll that found data
  std::uint64_t looked_ns_ = 0;     ///< begin of the last poll
  std::uint64_t asked_ns_ = 0;
  std::uint64_t told_ns_ = 0;
  std::uint64_t told_bytes_ = 0;
  std::uint64_t first_bytes_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t superpages_ = 0;
  std::uint64_t looks_ = 0;
  unsigned empty_looks_ = 0;  ///< polls without data in a row, up to now
  double cpu_begin_ = 0;
};

Error bad_settings(std::string what) {
  return {"card.bad_setting", std::move(what), {}, "change --superpage-size or --buffer-size"};
}

}  // namespace

Result<DmaBenchResult> run_dma_bench(Card& card, const DmaBenchSettings& settings) {
  if (settings.superpage_bytes == 0 || settings.superpage_bytes % kSuperpageGranule != 0)
    return std::unexpected(
        bad_settings(fmt::format("superpages are multiples of 32 KiB, {} bytes are not", settings.superpage_bytes)));
  if (settings.buffer_bytes / settings.superpage_bytes < 2)
    return std::unexpected(bad_settings("the buffer must hold at least two superpages"));
  RODEO_TRY(DmaChannel::check(card, settings.channel, settings.dma.source));
  if (settings.dma.links != 0 && card.type() != CardType::cru)
    return std::unexpected(
        Error{"card.bad_setting", "links are chosen in a CRU, not here", card.address().text(), "leave out --links"});
  if ((settings.dma.links >> card_registers::cru::kLinks) != 0)
    return std::unexpected(
        Error{"card.bad_setting",
              fmt::format("links {:#x}, but a CRU has 0 to {}", settings.dma.links, card_registers::cru::kLinks - 1),
              card.address().text(), "give links that the card has"});
  const StayAtCard here(settings.place);
  auto memory =
      DmaMemory::create(settings.buffer_bytes / settings.superpage_bytes * settings.superpage_bytes, settings.place.node);
  if (!memory) {
    // The code base.memory would blame the configuration; here the machine has too little memory.
    return std::unexpected(Error{"card.dma_memory", memory.error().what, memory.error().where,
                                 "make --buffer-size smaller, or end other programs"});
  }
  auto channel = RODEO_TRY(DmaChannel::open(card, settings.channel, memory->shared(), settings.dma));
  if (settings.superpage_bytes % channel->granule() != 0 || settings.superpage_bytes > channel->largest())
    return std::unexpected(bad_settings(fmt::format("this card takes superpages of multiples of {} up to {} bytes, not {}",
                                                    channel->granule(), channel->largest(), settings.superpage_bytes)));
  DataCheckSettings check_settings = settings.check;
  check_settings.source = settings.dma.source;
  check_settings.links = settings.dma.links;
  check_settings.superpage_bytes = settings.superpage_bytes;
  check_settings.superpages = memory->bytes().size() / settings.superpage_bytes;
  auto check = RODEO_TRY(make_data_check(card, settings.channel, check_settings));

  double store = 0;
  double copy = 0;
  if (settings.measure_ceiling) {
    store = store_ceiling(memory->bytes(), milliseconds{200});
    copy = copy_ceiling(memory->bytes(), milliseconds{200});
  }
  ::prctl(PR_SET_TIMERSLACK, 1000UL);  // pauses are short; the default would make each 50 us longer
  auto result = Run(card, *channel, *check, settings).run();
  if (!result) return result;
  result->memory = memory->description();
  result->store_ceiling_bytes_per_second = store;
  result->copy_ceiling_bytes_per_second = copy;
  return result;
}

}  // namespace rodeo::bench
