#include "bench/farm/farm_meeting.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <string>

#include "base/error.h"

namespace rodeo::bench {
namespace {

base::Mapping shared(std::size_t bytes) {
  base::Mapping memory(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
                       bytes);
  if (!memory) throw SetupError({"bench.processes", std::string("no shared memory: ") + std::strerror(errno)});
  return memory;
}

}  // namespace

FarmMeeting::FarmMeeting() : counts_(shared(sizeof(FarmCounts))), bits_(shared(2 * kMostBenchEvents / 8)) {
  new (counts_.data()) FarmCounts{};
}

std::atomic<std::uint64_t>& FarmMeeting::word(Bit which, std::uint64_t id) const {
  auto* const words = reinterpret_cast<std::atomic<std::uint64_t>*>(bits_.data());
  return words[(which == Bit::assigned ? 0 : kMostBenchEvents / 64) + id / 64];
}

bool FarmMeeting::set(Bit which, std::uint64_t id) const {
  if (id >= kMostBenchEvents) return true;
  const std::uint64_t bit = std::uint64_t{1} << (id % 64);
  return (word(which, id).fetch_or(bit, std::memory_order_relaxed) & bit) != 0;
}

bool FarmMeeting::is_set(Bit which, std::uint64_t id) const {
  return id < kMostBenchEvents && (word(which, id).load(std::memory_order_relaxed) >> (id % 64) & 1) != 0;
}

}  // namespace rodeo::bench
