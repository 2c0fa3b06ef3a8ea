#include "bench/network/route_bench.h"

#include <vector>

#include "bench/network/network_side.h"
#include "bench/readout/build_bench.h"
#include "bench/readout/prepared_input.h"
#include "bench/readout/scaling.h"

namespace rodeo::bench {
namespace {

/// Checks that each link brings its prepared chunks, event by event.
class EventProof {
 public:
  EventProof(const PreparedInput& input, std::uint32_t chunk_bytes)
      : provable_(input.provable()), chunk_bytes_(chunk_bytes), next_(input.links().size()) {
    for (std::uint32_t event = 0; event < input.cycle_events(); ++event) headers_.push_back(provable_.header(L1Id{event}));
    for (const Fid fid : input.links()) ids_.push_back(fid.default_link_id());
  }

  std::uint64_t chunks = 0;
  std::uint64_t bytes = 0;
  std::uint64_t mismatches = 0;

  void take(const ChunkRun& run) {
    std::uint32_t& event = next_[run.link];
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const std::span<const std::byte> chunk = run.chunk(i);
      const bool good = chunk.size() == chunk_bytes_ && run.chunk_status(i) == 0 && !run.more_follows &&
                        provable_.matches(chunk, headers_[event], provable_.key(ids_[run.link], L1Id{event}));
      mismatches += good ? 0 : 1;
      bytes += chunk.size();
      event = event + 1 == headers_.size() ? 0 : event + 1;
    }
    chunks += run.count;
  }

 private:
  const formats::Provable& provable_;
  const std::uint32_t chunk_bytes_;
  std::vector<std::uint64_t> headers_;
  std::vector<std::uint32_t> ids_;
  std::vector<std::uint32_t> next_;
};

}  // namespace

RouteBenchResult run_route_bench(const RouteBenchSettings& settings) {
  const BenchFolder folder;
  PreparedInput input({.links = settings.links, .chunk_bytes = settings.chunk_bytes, .blocks = true});
  const std::unique_ptr<DataStream> stream = input.open(input.links());
  const NetworkEnds ends{.bus = folder.path(), .provider = settings.provider, .page_bytes = settings.page_bytes};
  RouteBenchResult result;
  result.copy_ceiling_bytes_per_second = copy_ceiling(input);
  result.input_bytes = input.bytes();

  const int rounds = rounds_of(settings.seconds);
  const auto route = [&](std::uint32_t wanted) {
    const SharedMeeting meeting;
    const auto router = [&] {
      Page* page = nullptr;
      std::uint64_t changes = 0;
      run_publisher(*meeting, ends, input.links(), [&](const transport::Publisher& publisher) -> std::span<const ChunkRun> {
        if (const std::uint64_t now = publisher.wanted_changes(); now != changes) {
          changes = now;
          for (LinkIndex link = 0; link < input.links().size(); ++link) stream->want(link, publisher.wanted(link));
        }
        if (page != nullptr) page->drop();
        page = nullptr;
        return stream->poll(page) == PollStatus::page ? page->runs : std::span<const ChunkRun>{};
      });
    };
    const Window window = measure(*meeting, settings.seconds / rounds, router, [&] {
      const std::span<const Fid> links = input.links().first(wanted);
      settings.discard ? run_subscriber(*meeting, ends, links, Discarded{})
                       : run_subscriber(*meeting, ends, links, EventProof(input, settings.chunk_bytes));
    });
    result.lost += lost_of(*meeting);
    result.mismatches += meeting->mismatches.load();
    result.chunks += meeting->chunks.load();
    return window;
  };

  const std::uint32_t wanted = settings.subscribed == 0 ? settings.links : settings.subscribed;
  const double read = static_cast<double>(settings.links) / wanted;  // chunks read for each wanted chunk
  std::vector<double> rates, per_core, payload, unwanted;
  for (int round = 0; round < rounds; ++round) {
    const Window window = route(wanted);
    const double cost = window.sender_cpu_seconds / window.chunks;
    rates.push_back(window.chunks / window.seconds);
    per_core.push_back(1 / cost);
    payload.push_back(window.bytes / window.seconds);
    result.seconds += window.seconds;
    result.router_cpu_seconds += window.sender_cpu_seconds;
    result.subscriber_cpu_seconds += window.receiver_cpu_seconds;
    if (wanted == settings.links) continue;
    const Window all = route(settings.links);
    const double cost_of_wanted = all.sender_cpu_seconds / all.chunks;
    unwanted.push_back((cost - cost_of_wanted) / (read - 1) / cost_of_wanted);
  }
  result.chunks_per_second = median(rates);
  result.chunks_per_core_second = median(per_core);
  result.read_chunks_per_core_second = read * result.chunks_per_core_second;
  result.payload_bytes_per_second = median(payload);
  result.unwanted_cost = median(unwanted);
  return result;
}

}  // namespace rodeo::bench
