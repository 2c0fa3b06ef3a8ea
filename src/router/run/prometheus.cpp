#include "router/run/prometheus.h"

#include <fmt/format.h>

#include <span>
#include <string_view>

#include "process/prometheus.h"
#include "router/router_report.h"

namespace rodeo::router {
namespace {

using process::PrometheusText;

void add_readers(PrometheusText& out, const RouterStatus& status) {
  const auto each = [&](const std::string& name, std::string_view type, std::string_view help, auto value) {
    out.metric(name, type, help);
    for (const ReaderStatus& reader : status.readers) out.sample(value(reader), {{"reader", reader.name}});
  };
  const auto counters = [&](std::span<const base::CounterInfo> infos) {
    for (const base::CounterInfo& info : infos)
      each(fmt::format("rodeo_router_{}_total", info.name), "counter", info.help,
           [&](const ReaderStatus& reader) { return reader[info.name]; });
  };
  counters(kReaderCounters);
  counters(transport::kPublisherCounters);
  each("rodeo_router_links", "gauge", "Links that the reader publishes.",
       [](const ReaderStatus& reader) { return reader.links; });
  each("rodeo_router_cpu_seconds_total", "counter", "CPU time of the reader.",
       [](const ReaderStatus& reader) { return reader.cpu_seconds; });
}

void add_subscribers(PrometheusText& out, const RouterStatus& status) {
  using Subscriber = transport::Publisher::Subscriber;
  const auto each = [&](std::string_view name, std::string_view type, std::string_view help, auto value) {
    out.metric(name, type, help);
    for (const ReaderStatus& reader : status.readers) {
      for (const Subscriber& one : reader.subscribers)
        out.sample(value(one), {{"reader", reader.name},
                                {"subscriber", one.name},
                                {"peer", one.peer},
                                {"kind", one.monitor ? "monitor" : "data"}});
    }
  };
  each("rodeo_router_subscriber_connected", "gauge", "1 while the subscriber is there.",
       [](const Subscriber& one) { return one.connected ? 1 : 0; });
  each("rodeo_router_subscriber_chunks_total", "counter", "Chunks in pages for the subscriber.",
       [](const Subscriber& one) { return one.chunks; });
  each("rodeo_router_subscriber_bytes_total", "counter", "Bytes of these pages.",
       [](const Subscriber& one) { return one.bytes; });
  each("rodeo_router_subscriber_waits_total", "counter", "Times that the reader found no room in a page for the subscriber.",
       [](const Subscriber& one) { return one.waits; });
  each("rodeo_router_subscriber_dropped_chunks_total", "counter", "Chunks that the subscriber, a monitor, had no room for.",
       [](const Subscriber& one) { return one.dropped_chunks; });
}

}  // namespace

std::string prometheus_text(const RouterSettings& settings, const RouterStatus& status) {
  PrometheusText out(process::Labels{{"router", settings.name}});
  out.metric("rodeo_router_seconds", "gauge", "Time since the start of the input.");
  out.sample(status.seconds);
  out.metric("rodeo_input_counter", "untyped",
             "Counters that the input offers by name: sent chunks, accepted and vetoed triggers, faults on demand.");
  for (const NamedCounter& counter : status.input) out.sample(counter.value, {{"counter", counter.name}});
  out.metric("rodeo_input_cpu_seconds_total", "counter", "CPU time of the input's own threads.");
  out.sample(status.input_cpu_seconds);
  out.metric("rodeo_limited_by", "gauge", "1 for the subscriber that the readers waited for most often.");
  out.sample(1, {{"stage", limited_by(status)}});
  add_readers(out, status);
  add_subscribers(out, status);
  return out.take();
}

}  // namespace rodeo::router
