#include "bench/readout/latency_bench.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/named_counters.h"
#include "base/need.h"
#include "bench/readout/build_bench.h"
#include "readout/fragment_meter.h"

namespace rodeo::bench {

using namespace readout;

namespace {

Parameters defaults(const base::ComponentRegistry& registry, base::ComponentKind kind, std::string_view name) {
  return parameters_of(need(registry.find(kind, name))->info);
}

}  // namespace

LatencyBenchResult run_latency_bench(const LatencyBenchSettings& settings, const base::ComponentRegistry& registry) {
  using base::ComponentKind;
  const std::uint32_t cpus = std::max(1U, std::thread::hardware_concurrency());

  Parameters input_parameters = defaults(registry, ComponentKind::input, "generator");
  input_parameters.set("links", static_cast<std::int64_t>(settings.links));
  input_parameters.set("chunk_bytes", static_cast<std::int64_t>(settings.chunk_bytes));
  input_parameters.set("rate", settings.rate_hz);
  if (settings.pinned) input_parameters.set("cpu", static_cast<std::int64_t>(settings.workers % cpus));
  const auto input = need(registry.make_input("generator", input_parameters));

  Parameters consumer_parameters = defaults(registry, ComponentKind::consumer, "processor");
  consumer_parameters.set("threads", std::int64_t{0});
  consumer_parameters.set("work", std::string("release"));
  const auto consumer = need(registry.make_consumer("processor", consumer_parameters));
  FragmentMeter meter;
  meter.link(consumer.get());

  std::vector<BuilderLink> links;
  for (const Fid fid : input->links()) links.push_back({.fid = fid, .link_id = fid.default_link_id()});
  const Parameters extractor_parameters = defaults(registry, ComponentKind::extractor, "rodeo");
  const BuilderContext context{
      .source_id = SourceId{0x610001},
      .links = links,
      .input = input.get(),
      .consumer = &meter,
      .make_extractor = [&] { return need(registry.make_extractor("rodeo", extractor_parameters)); },
      .make_checker = {}};
  Parameters builder_parameters = defaults(registry, ComponentKind::builder, "gbt");
  builder_parameters.set("workers", static_cast<std::int64_t>(settings.workers));
  builder_parameters.set("chunk_size", static_cast<std::int64_t>(settings.chunk_bytes));
  builder_parameters.set("timeout", static_cast<std::int64_t>(std::chrono::nanoseconds(std::chrono::seconds(1)).count()));
  builder_parameters.set("idle", std::string("spin"));
  if (settings.pinned) {
    std::vector<std::uint64_t> pins;
    for (std::uint32_t i = 0; i < settings.workers; ++i) pins.push_back(i % cpus);
    builder_parameters.set("cpus", pins);
  }
  const auto builder = need(registry.make_builder("gbt", builder_parameters, context));

  LatencyBenchResult result;
  result.generator_has_a_core = settings.workers < cpus;
  consumer->start();
  builder->start();
  const double cpu_before = base::process_cpu_seconds();
  const std::uint64_t start = base::steady_now_ns();
  input->start();
  std::this_thread::sleep_for(std::chrono::duration<double>(settings.seconds));
  result.cpu_seconds = base::process_cpu_seconds() - cpu_before;
  result.seconds = static_cast<double>(base::steady_now_ns() - start) * 1e-9;
  const base::LatencySummary latency = meter.latency();
  input->stop();
  builder->join();
  consumer->stop();

  const FragmentBuilder::Status status = builder->status();
  result.fragments = latency.count();
  result.incomplete = status.incomplete;
  for (const NamedCounter& lost : status.lost) result.lost += lost.value;
  result.unaccounted = base::counter_value(input->counters(), "sent") - status.chunks_built - result.lost;
  result.vetoed = base::counter_value(input->counters(), "vetoed");
  result.p50_ns = latency.percentile_ns(0.5);
  result.p99_ns = latency.percentile_ns(0.99);
  result.max_ns = latency.max_ns();
  return result;
}

}  // namespace rodeo::bench
