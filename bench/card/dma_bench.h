// Reads a DMA channel at full speed and checks the data: rate, CPU, latency and errors of one run (roc-bench-dma of
// ReadoutCard).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "bench/card/data_check.h"
#include "card/card.h"
#include "card/dma/channel.h"
#include "card/numa.h"

namespace rodeo::bench {

struct DmaBenchSettings {
  unsigned channel = 0;
  card::DmaSettings dma = {};
  DataCheckSettings check = {};  ///< run_dma_bench() sets superpage size, source and number
  std::uint64_t buffer_bytes = std::uint64_t{1} << 30;
  std::uint32_t superpage_bytes = 1U << 20;
  std::uint64_t bytes = 0;           ///< amount to read, rounded up to a superpage; 0: until `stop`
  std::chrono::nanoseconds time{0};  ///< time to read; 0: no limit
  std::chrono::nanoseconds patience{std::chrono::seconds{
      5}};  ///< after this time without data and three polls: card.no_data (zero: never); half of it at the end of `time`
  /// Pause between two polls of the card. Nothing: the time to fill an eighth of its superpages, 20 us to 10 ms. Zero: no
  /// pause.
  std::optional<std::chrono::nanoseconds> pause = {};
  bool measure_ceiling = true;
  card::ReaderPlace place = {};  ///< place of the calling thread, and so of the memory that it touches first
  /// Called once a second with the progress up to now.
  std::function<void(const struct DmaBenchProgress&)> progress = {};
  /// Called after every poll; true ends the run in order.
  std::function<bool()> stop = {};
  /// Gets every superpage that has data, after the check. False ends the run.
  std::function<bool(std::span<const std::byte>)> sink = {};
};

struct DmaBenchProgress {
  double seconds = 0;
  std::uint64_t superpages = 0;
  std::uint64_t bytes = 0;
  double bytes_per_second = 0;  ///< rate since the last progress
  std::uint64_t errors = 0;
  double buffer_fill = 0;  ///< 0: the card has all superpages, 1: none
  std::optional<double> temperature_celsius;
};

struct DmaBenchResult {
  std::uint64_t bytes = 0;
  std::uint64_t superpages = 0;
  double seconds = 0;  ///< time from the first poll that found data to the end
  double bytes_per_second = 0;
  double driver_cpu_fraction = 0;  ///< CPU time of the whole process per wall-clock time, checks included
  std::uint64_t errors = 0;
  std::vector<NamedCount> counts;       ///< counts of the check and the channel, by name
  std::vector<std::string> findings;    ///< the first errors as text
  double superpage_latency_p50_us = 0;  ///< time from push to pop, including the card's queue
  double superpage_latency_p99_us = 0;
  std::uint64_t looks = 0;  ///< polls of the card
  std::string memory;       ///< "1 GiB on 2 MiB huge pages"
  double store_ceiling_bytes_per_second = 0;
  double copy_ceiling_bytes_per_second = 0;
};

/// Opens the channel, reads, stops it. Errors: those of the channel and the card, card.no_data.
Result<DmaBenchResult> run_dma_bench(card::Card& card, const DmaBenchSettings& settings);

}  // namespace rodeo::bench
