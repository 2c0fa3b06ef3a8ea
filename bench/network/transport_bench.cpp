#include "bench/network/transport_bench.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/arena.h"
#include "bench/network/bare.h"
#include "bench/network/network_side.h"
#include "bench/readout/scaling.h"

namespace rodeo::bench {
namespace {

constexpr std::size_t kLeastPrepared = 4U << 20;
constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;

std::vector<Fid> fids(std::uint32_t links) {
  std::vector<Fid> all;
  for (std::uint32_t i = 0; i < links; ++i) all.push_back(Fid::of(0x61, i / 2048, i / 8 % 256, i % 8));
  return all;
}

/// A cycle of runs from all links in turn. Every chunk contains its number, so no two are equal.
class Prepared {
 public:
  explicit Prepared(const TransportBenchSettings& settings) : settings_(settings) {
    const std::size_t turn_bytes = std::size_t{settings.links} * run_bytes();
    turns_ = std::max<std::size_t>(1, (kLeastPrepared + turn_bytes - 1) / turn_bytes);
    auto arena = base::Arena::create(turns_ * turn_bytes);
    if (!arena) throw SetupError(arena.error().within("prepared runs"));
    arena_ = std::move(*arena);
    const std::size_t chunks = turns_ * settings.links * settings.run_length;
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      std::byte* const to = arena_.data() + chunk * settings.chunk_bytes;
      for (std::size_t at = 0; at < settings.chunk_bytes; at += 8) {
        const std::uint64_t word = at == 0 ? chunk : chunk * kStep + at;
        std::memcpy(to + at, &word, std::min<std::size_t>(8, settings.chunk_bytes - at));
      }
    }
    for (std::size_t run = 0; run < turns_ * settings.links; ++run) {
      runs_.push_back({.data = arena_.data() + run * run_bytes(),
                       .size = settings.chunk_bytes,
                       .stride = settings.chunk_bytes,
                       .count = settings.run_length,
                       .link = static_cast<LinkIndex>(run % settings.links)});
    }
  }

  std::size_t run_bytes() const { return std::size_t{settings_.run_length} * settings_.chunk_bytes; }
  std::size_t turns() const { return turns_; }
  std::span<const ChunkRun> runs() const { return runs_; }
  const std::byte* run(std::size_t turn, LinkIndex link) const {
    return arena_.data() + (turn * settings_.links + link) * run_bytes();
  }

 private:
  const TransportBenchSettings& settings_;
  base::Arena arena_;
  std::vector<ChunkRun> runs_;
  std::size_t turns_ = 0;
};

/// Checks each link's data, byte by byte and in order, against the prepared data.
class RunProof {
 public:
  RunProof(const TransportBenchSettings& settings, const Prepared& prepared)
      : chunk_bytes_(settings.chunk_bytes), prepared_(prepared), places_(settings.links) {}

  std::uint64_t chunks = 0;
  std::uint64_t bytes = 0;
  std::uint64_t mismatches = 0;

  void take(const ChunkRun& run) {
    Place& place = places_[run.link];
    const bool part = run.more_follows || place.part > 0;
    place.part += part ? run.size : 0;
    const bool whole = part ? run.more_follows || place.part == chunk_bytes_ : run.size == chunk_bytes_;
    if (!run.more_follows) place.part = 0;
    if (!whole || run.entries != nullptr || run.status != 0 || run.stride != run.size) ++mismatches;
    const std::byte* from = run.data;
    for (std::size_t left = std::size_t{run.count} * run.size; left > 0;) {
      const std::size_t piece = std::min(left, prepared_.run_bytes() - place.byte);
      if (std::memcmp(from, prepared_.run(place.turn, run.link) + place.byte, piece) != 0) ++mismatches;
      from += piece;
      left -= piece;
      place.byte += piece;
      if (place.byte < prepared_.run_bytes()) continue;
      place.byte = 0;
      place.turn = place.turn + 1 == prepared_.turns() ? 0 : place.turn + 1;
    }
    chunks += run.more_follows ? 0 : run.count;
    bytes += std::uint64_t{run.count} * run.size;
  }

 private:
  struct Place {
    std::size_t turn = 0;
    std::size_t byte = 0;  // offset in the link's run
    std::size_t part = 0;  // bytes of a chunk that comes in parts
  };
  const std::size_t chunk_bytes_;
  const Prepared& prepared_;
  std::vector<Place> places_;
};

/// The content of a single chunk: the time of its publication, and its number.
struct Stamped {
  std::uint64_t ns = 0;
  std::uint64_t number = 0;
  std::byte rest[kLatencyChunkBytes - 16] = {};
};
static_assert(sizeof(Stamped) == kLatencyChunkBytes);

struct StampProof {
  Meeting& meeting;
  std::uint64_t chunks = 0;
  std::uint64_t bytes = 0;
  std::uint64_t mismatches = 0;

  void take(const ChunkRun& run) {
    const std::uint64_t now = base::steady_now_ns();
    Stamped stamped;
    if (run.count != 1 || run.size != sizeof stamped || run.status != 0) {
      ++mismatches;
    } else {
      std::memcpy(&stamped, run.data, sizeof stamped);
      if (stamped.number != chunks) ++mismatches;
      meeting.latency.record(now - std::min(now, stamped.ns));
    }
    chunks += run.count;
    bytes += run.size;
  }
};

class Rounds {
 public:
  explicit Rounds(const TransportBenchSettings& settings)
      : settings_(settings),
        prepared_(settings),
        links_(fids(settings.links)),
        rounds_(rounds_of(settings.seconds)),
        seconds_(settings.seconds / rounds_) {}

  TransportBenchResult run() {
    for (int round = 0; round < rounds_; ++round) {
      const Window bare = bare_pages(settings_.provider, settings_.page_bytes, false, seconds_);
      const Window filled = bare_pages(settings_.provider, settings_.page_bytes, true, seconds_);
      const Window ours = throughput();
      const Window sockets = socket_pages(settings_.page_bytes, seconds_);
      payload_.push_back(ours.bytes_per_second());
      payload_per_core_.push_back(ours.bytes_per_core_second());
      bare_.push_back(bare.bytes_per_second());
      bare_per_core_.push_back(bare.bytes_per_core_second());
      of_bare_.push_back(ours.bytes_per_second() / bare.bytes_per_second());
      of_bare_per_core_.push_back(ours.bytes_per_core_second() / bare.bytes_per_core_second());
      filled_.push_back(filled.bytes_per_second());
      of_filled_.push_back(ours.bytes_per_second() / filled.bytes_per_second());
      of_filled_per_core_.push_back(ours.bytes_per_core_second() / filled.bytes_per_core_second());
      sockets_.push_back(sockets.bytes_per_second());
      const double ping = bare_half_round_trip_ns(settings_.provider, kLatencyChunkBytes, seconds_ / 3);
      const double one_way = latency();
      bare_latency_.push_back(ping * 1e-3);
      latency_of_bare_.push_back(one_way / ping);
    }
    result_.payload_bytes_per_second = median(payload_);
    result_.bare_bytes_per_second = median(bare_);
    result_.socket_bytes_per_second = median(sockets_);
    result_.of_bare = median(of_bare_);
    result_.payload_bytes_per_core_second = median(payload_per_core_);
    result_.bare_bytes_per_core_second = median(bare_per_core_);
    result_.of_bare_per_core = median(of_bare_per_core_);
    result_.filled_bytes_per_second = median(filled_);
    result_.of_filled = median(of_filled_);
    result_.of_filled_per_core = median(of_filled_per_core_);
    result_.latency_p50_us = median(latency_p50_);
    result_.latency_p99_us = median(latency_p99_);
    result_.bare_latency_p50_us = median(bare_latency_);
    result_.latency_of_bare = median(latency_of_bare_);
    return result_;
  }

 private:
  void prove(const Meeting& meeting) {
    result_.lost += lost_of(meeting);
    result_.mismatches += meeting.mismatches.load();
  }

  Window throughput() {
    const SharedMeeting meeting;
    const NetworkEnds ends{.bus = folder_.path(), .provider = settings_.provider, .page_bytes = settings_.page_bytes};
    const auto send = [&] {
      const std::span<const ChunkRun> runs = prepared_.runs();
      // Publish some runs at a time, like the pages of an input.
      const std::size_t at_once = std::clamp<std::size_t>((64U << 10) / prepared_.run_bytes(), 1, runs.size());
      std::size_t at = 0;
      run_publisher(*meeting, ends, links_, [&](const transport::Publisher&) {
        const auto page = runs.subspan(at, std::min(at_once, runs.size() - at));
        at = at + page.size() == runs.size() ? 0 : at + page.size();
        return page;
      });
    };
    const Window window = measure(*meeting, seconds_, send, [&] {
      settings_.discard ? run_subscriber(*meeting, ends, links_, Discarded{})
                        : run_subscriber(*meeting, ends, links_, RunProof(settings_, prepared_));
    });
    prove(*meeting);
    const auto sent = static_cast<double>(meeting->sent_chunks.load());
    result_.chunks += meeting->chunks.load();
    result_.wire_bytes_per_chunk = static_cast<double>(meeting->sent_bytes.load()) / sent;
    result_.payload_efficiency = settings_.chunk_bytes / result_.wire_bytes_per_chunk;
    result_.seconds += window.seconds;
    result_.publisher_cpu_seconds += window.sender_cpu_seconds;
    result_.subscriber_cpu_seconds += window.receiver_cpu_seconds;
    return window;
  }

  double latency() {
    const SharedMeeting meeting;
    const NetworkEnds ends{.bus = folder_.path(), .provider = settings_.provider, .unbuffered = true};
    const std::span<const Fid> link = std::span(links_).first(1);
    const auto send = [&] {
      Stamped stamped;
      const ChunkRun run{.data = reinterpret_cast<const std::byte*>(&stamped),
                         .size = sizeof stamped,
                         .stride = sizeof stamped,
                         .count = 1};
      std::uint64_t number = 0;
      run_publisher(*meeting, ends, link, [&](const transport::Publisher&) -> std::span<const ChunkRun> {
        if (meeting->chunks.load(std::memory_order_relaxed) < number) return {};
        stamped.number = number++;
        stamped.ns = base::steady_now_ns();
        return {&run, 1};
      });
    };
    measure(*meeting, seconds_ / 3, send, [&] { run_subscriber(*meeting, ends, link, StampProof{*meeting}); });
    prove(*meeting);
    base::LatencySummary all;
    meeting->latency.add_to(all);
    const auto p50 = static_cast<double>(all.percentile_ns(0.5));
    latency_p50_.push_back(p50 * 1e-3);
    latency_p99_.push_back(static_cast<double>(all.percentile_ns(0.99)) * 1e-3);
    return p50;
  }

  const TransportBenchSettings& settings_;
  const BenchFolder folder_;
  const Prepared prepared_;
  const std::vector<Fid> links_;
  const int rounds_;
  const double seconds_;  // duration of one measurement
  TransportBenchResult result_;
  std::vector<double> filled_, of_filled_, of_filled_per_core_;
  std::vector<double> payload_, bare_, of_bare_, sockets_, payload_per_core_, bare_per_core_, of_bare_per_core_;
  std::vector<double> latency_p50_, latency_p99_, bare_latency_, latency_of_bare_;
};

}  // namespace

TransportBenchResult run_transport_bench(const TransportBenchSettings& settings) { return Rounds(settings).run(); }

}  // namespace rodeo::bench
