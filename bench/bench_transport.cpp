// `rodeo bench transport`: chunks over the network, compared with the same network without Rodeo.
#include <fmt/core.h>

#include "base/sentence.h"
#include "bench/bench.h"
#include "bench/network/transport_bench.h"
#include "bench/proof.h"
#include "bench/readout/build_bench.h"

namespace rodeo::bench {

using namespace cli;

namespace {

Json json_of(const TransportBenchSettings& settings, const TransportBenchResult& result) {
  return Json::object({{"provider", settings.provider},
                       {"links", settings.links},
                       {"chunk_bytes", settings.chunk_bytes},
                       {"run_length", settings.run_length},
                       {"page_bytes", settings.page_bytes},
                       {"seconds", result.seconds},
                       {"payload_bytes_per_second", result.payload_bytes_per_second},
                       {"wire_bytes_per_chunk", result.wire_bytes_per_chunk},
                       {"payload_efficiency", result.payload_efficiency},
                       {"bare_bytes_per_second", result.bare_bytes_per_second},
                       {"socket_bytes_per_second", result.socket_bytes_per_second},
                       {"of_bare", result.of_bare},
                       {"filled_bytes_per_second", result.filled_bytes_per_second},
                       {"of_filled", result.of_filled},
                       {"of_filled_per_core", result.of_filled_per_core},
                       {"payload_bytes_per_core_second", result.payload_bytes_per_core_second},
                       {"bare_bytes_per_core_second", result.bare_bytes_per_core_second},
                       {"of_bare_per_core", result.of_bare_per_core},
                       {"latency_chunk_bytes", kLatencyChunkBytes},
                       {"latency_p50_us", result.latency_p50_us},
                       {"latency_p99_us", result.latency_p99_us},
                       {"bare_latency_p50_us", result.bare_latency_p50_us},
                       {"latency_of_bare", result.latency_of_bare},
                       {"cpu_seconds", Json::object({{"publisher", result.publisher_cpu_seconds},
                                                     {"subscriber", result.subscriber_cpu_seconds}})},
                       {settings.discard ? "discarded_chunks" : "verified_chunks", result.chunks},
                       {"lost", result.lost},
                       {"mismatches", result.mismatches}});
}

void print(const TransportBenchSettings& settings, const TransportBenchResult& result) {
  fmt::print("{}, {} x {} B, runs of {}, pages of {} B\n", settings.provider, base::counted(settings.links, "link"),
             settings.chunk_bytes, settings.run_length, settings.page_bytes);
  fmt::print("  payload    {:8.2f} GB/s     {:8.2f} of bare pages ({:.2f} GB/s); plain sockets {:.2f} GB/s\n",
             result.payload_bytes_per_second * 1e-9, result.of_bare, result.bare_bytes_per_second * 1e-9,
             result.socket_bytes_per_second * 1e-9);
  fmt::print("  per core   {:8.2f} GB/s     {:8.2f} of bare pages ({:.2f} GB/s), by the CPU of both sides\n",
             result.payload_bytes_per_core_second * 1e-9, result.of_bare_per_core, result.bare_bytes_per_core_second * 1e-9);
  fmt::print(
      "  filled     {:8.2f} GB/s     bare pages that are copied before they go; payload {:.2f} of it, {:.2f} per core\n",
      result.filled_bytes_per_second * 1e-9, result.of_filled, result.of_filled_per_core);
  fmt::print("  wire       {:8.2f} B per chunk, {:.4f} of them payload\n", result.wire_bytes_per_chunk,
             result.payload_efficiency);
  fmt::print(
      "  latency    p50 {:.1f} us    p99 {:.1f} us, one chunk of {} B at a time; {:.2f} of a bare ping-pong ({:.1f} us)\n",
      result.latency_p50_us, result.latency_p99_us, kLatencyChunkBytes, result.latency_of_bare, result.bare_latency_p50_us);
  fmt::print("  cpu        {:8.2f} of the publisher's core, {:.2f} of the subscriber's\n",
             result.publisher_cpu_seconds / result.seconds, result.subscriber_cpu_seconds / result.seconds);
  fmt::print("  {:<9}  {}; {}, {} lost\n", settings.discard ? "discarded" : "verified",
             base::counted(result.chunks, "chunk"), mismatches(result.mismatches), result.lost);
}

}  // namespace

void add_bench_transport(Command& bench) {
  struct Options {
    TransportBenchSettings settings;
    std::string json;
  };
  auto options = std::make_shared<Options>();
  TransportBenchSettings& settings = options->settings;
  Command& transport =
      bench.verb("transport", "Chunks over the network to another process, beside bare pages and plain sockets");
  transport.example("rodeo bench transport", "192 links x 40 B over TCP, pages of 64 KiB")
      .example("rodeo bench transport --provider shm", "through memory that both processes share")
      .example("rodeo bench transport --links 24 --chunk-bytes 5000 --run-length 1 --discard",
               "FULL-mode chunks to a subscriber that looks at none");
  transport.choice("--provider", settings.provider, {"tcp", "shm", "verbs"}, "Network provider");
  transport.option("--links", settings.links, "Links of the publisher, whose runs come in turn");
  transport.option("--chunk-bytes", settings.chunk_bytes, "Size of a chunk [B]");
  transport.option("--run-length", settings.run_length, "Chunks in a run");
  transport.option("--page-bytes", settings.page_bytes, "Size of a page [B]");
  transport.flag("--discard", settings.discard, "The subscriber counts chunks, and looks at no byte of them");
  transport.option("--seconds", settings.seconds, "Length of each of the measurements [s], cut into five rounds");
  transport.json_file(options->json);
  transport.run([options]() -> Result<ExitCode> {
    const TransportBenchSettings& given = options->settings;
    RODEO_TRY(check_numbers({{"--links", static_cast<double>(given.links), 1, kMostBenchLinks},
                             {"--chunk-bytes", static_cast<double>(given.chunk_bytes), 8, kMostBenchChunk},
                             {"--run-length", static_cast<double>(given.run_length), 1, 65'535},
                             {"--page-bytes", static_cast<double>(given.page_bytes), 4096, 1 << 20},
                             {"--seconds", given.seconds, 0.001, kLongestBench}}));
    const TransportBenchResult result = run_transport_bench(given);
    if (options->json != "-") print(given, result);
    if (!options->json.empty()) RODEO_TRY(write_json(options->json, json_of(given, result)));
    if (result.lost + result.mismatches == 0) return ExitCode::done;
    return std::unexpected(not_proven(result.mismatches, 0, result.lost));
  });
}

}  // namespace rodeo::bench
