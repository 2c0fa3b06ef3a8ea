// One look at a whole router process, pulled from its readers while they run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/named_counters.h"
#include "process/phase.h"
#include "rodeo/input.h"
#include "transport/publisher.h"

namespace rodeo::router {

using base::counter_value;
using process::Phase;

/// What a reader counts, besides what its publisher does.
enum class ReaderCounter : std::uint8_t { chunks_read, bytes_read, not_taken, count };
inline constexpr std::array<base::CounterInfo, static_cast<std::size_t>(ReaderCounter::count)> kReaderCounters{{
    {"chunks_read", "chunks", "Chunks that the input handed to the reader."},
    {"bytes_read", "bytes", "Bytes of these chunks."},
    {"not_taken", "chunks",
     "Chunks that a subscriber of data did not take for `grace` at the end of the run; they went to nobody."},
}};

struct ReaderStatus {
  std::string name;  ///< of its publisher
  std::size_t links = 0;
  bool trigger_list = false;
  std::vector<NamedCounter> counters = {};  ///< of the reader and its publisher
  std::vector<transport::Publisher::Subscriber> subscribers = {};
  double cpu_seconds = 0;

  std::uint64_t operator[](std::string_view counter) const { return counter_value(counters, counter); }
};

/// Totals since the start of the input.
struct RouterStatus {
  Phase phase = Phase::prepared;
  bool waiting = false;      ///< for subscribers; the input has not started
  double seconds = 0;        ///< from the start of the input to its end, or until now
  std::string failure = {};  ///< why the run has to stop; empty while all is well
  std::vector<NamedCounter> input = {};
  double input_cpu_seconds = 0;
  std::vector<ReaderStatus> readers = {};

  /// Of the readers of links.
  std::uint64_t sum(std::string_view counter) const {
    std::uint64_t sum = 0;
    for (const ReaderStatus& reader : readers) sum += reader.trigger_list ? 0 : reader[counter];
    return sum;
  }
  std::size_t links() const {
    std::size_t sum = 0;
    for (const ReaderStatus& reader : readers) sum += reader.trigger_list ? 0 : reader.links;
    return sum;
  }
};

}  // namespace rodeo::router
