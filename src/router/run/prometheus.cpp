#include "router/run/prometheus.h"

#include <fmt/format.h>

#include <span>
#include <string_view>

#include "formats/link_names.h"
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
      each(fmt::format("rodeo_router_{}_total", info.name), "counter", process::help_of(info),
           [&](const ReaderStatus& reader) { return reader[info.name]; });
  };
  counters(kReaderSums);
  counters(kReaderCounters);
  counters(transport::kPublisherCounters);
  each("rodeo_router_links", "gauge", "Links that the reader publishes.",
       [](const ReaderStatus& reader) { return reader.links.size(); });
  each("rodeo_router_input_memory_fill_ratio", "gauge", "Share of the input's memory that is not free for it, 0 to 1.",
       [](const ReaderStatus& reader) { return reader.input_memory_fill; });
  each("rodeo_router_cpu_seconds_total", "counter", "CPU time of the reader.",
       [](const ReaderStatus& reader) { return reader.cpu_seconds; });
}

void add_links(PrometheusText& out, const RouterStatus& status) {
  for (std::size_t i = 0; i < kLinkCounters.size(); ++i) {
    out.metric(fmt::format("rodeo_router_{}_total", kLinkCounters[i].name), "counter", process::help_of(kLinkCounters[i]));
    for (const ReaderStatus& reader : status.readers) {
      for (const LinkStatus& link : reader.links)
        out.link_sample(link.tally[i], {{"reader", reader.name}}, formats::to_text(link.fid), formats::link_name(link.fid));
    }
  }
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
  each("rodeo_router_subscriber_pages", "gauge", "Pages with memory.", [](const Subscriber& one) { return one.page_slots; });
  each("rodeo_router_subscriber_pages_filled", "gauge", "Of these, pages that the subscriber has not acknowledged.",
       [](const Subscriber& one) { return one.pages_filled; });
  each("rodeo_router_subscriber_page_memory_bytes", "gauge", "Memory of these pages.",
       [](const Subscriber& one) { return one.page_slots * one.page_bytes; });
  each("rodeo_router_subscriber_waits_total", "counter", "Times that the reader found no room in a page for the subscriber.",
       [](const Subscriber& one) { return one.waits; });
  each("rodeo_router_subscriber_dropped_chunks_total", "counter", "Chunks that the subscriber, a monitor, had no room for.",
       [](const Subscriber& one) { return one.dropped_chunks; });
}

void add_front_ends(PrometheusText& out, const FrontEndStatus& status) {
  for (const base::CounterInfo& info : kFrontEndCounters) {
    out.metric(fmt::format("rodeo_router_front_end_{}_total", info.name), "counter", process::help_of(info));
    out.sample(counter_value(status.counters, info.name));
  }
  out.metric("rodeo_router_front_end_owners", "gauge", "Processes that have links to front-ends.");
  out.sample(status.owners.size());
  out.metric("rodeo_router_front_end_cpu_seconds_total", "counter", "CPU time of the thread that serves them.");
  out.sample(status.cpu_seconds);
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
  add_links(out, status);
  add_subscribers(out, status);
  if (status.front_ends) add_front_ends(out, *status.front_ends);
  return out.take();
}

}  // namespace rodeo::router
