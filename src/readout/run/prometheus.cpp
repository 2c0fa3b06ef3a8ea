#include "readout/run/prometheus.h"

#include <string_view>
#include <vector>

#include "formats/link_names.h"
#include "process/prometheus.h"

namespace rodeo::readout {
namespace {

using process::PrometheusText;

void add_robs(PrometheusText& out, const ReadoutStatus& status) {
  const auto each = [&](std::string_view name, std::string_view type, std::string_view help, auto value) {
    out.metric(name, type, help);
    for (const auto& rob : status.robs) out.sample(value(rob.builder), {{"rob", formats::to_text(rob.source_id)}});
  };
  using Status = FragmentBuilder::Status;
  each("rodeo_fragments_total", "counter", "Fragments built.", [](const Status& s) { return s.fragments; });
  each("rodeo_fragments_incomplete_total", "counter", "Fragments that lack a link or are flagged.",
       [](const Status& s) { return s.incomplete; });
  each("rodeo_fragments_without_removed_total", "counter", "Fragments, complete or not, that lack links which were removed.",
       [](const Status& s) { return s.without_removed; });
  each("rodeo_chunks_received_total", "counter", "Chunks received from the input.",
       [](const Status& s) { return s.chunks_received; });
  each("rodeo_chunks_built_total", "counter", "Chunks in fragments.", [](const Status& s) { return s.chunks_built; });
  each("rodeo_payload_bytes_total", "counter", "ROD data of fragments, chunk headers included.",
       [](const Status& s) { return s.payload_bytes; });
  each("rodeo_open_events", "gauge", "Events that are being built.", [](const Status& s) { return s.open_events; });
  each("rodeo_window_events", "gauge", "Events that can be open at once.", [](const Status& s) { return s.window_events; });
  each("rodeo_pool_fill_ratio", "gauge", "Slice buffers in use, 0 to 1.", [](const Status& s) { return s.pool_fill; });
  each("rodeo_builder_cpu_seconds_total", "counter", "CPU time of the builder's workers.",
       [](const Status& s) { return s.cpu_seconds; });

  const auto each_reason = [&](std::string_view name, std::string_view help, std::vector<NamedCounter> Status::* member) {
    out.metric(name, "counter", help);
    for (const auto& rob : status.robs) {
      for (const NamedCounter& reason : rob.builder.*member) {
        out.sample(reason.value, {{"rob", formats::to_text(rob.source_id)}, {"reason", reason.name}});
      }
    }
  };
  each_reason("rodeo_chunks_lost_total", "Chunks in no fragment, by reason.", &Status::lost);
  each_reason("rodeo_fragments_incomplete_reason_total", "Incomplete fragments, by reason; one fragment may have several.",
              &Status::incomplete_by_reason);
}

void add_links(PrometheusText& out, const ReadoutStatus& status) {
  const auto each = [&](std::string_view name, std::string_view type, std::string_view help, auto value) {
    out.metric(name, type, help);
    for (const auto& rob : status.robs) {
      for (const auto& link : rob.builder.links) {
        out.link_sample(value(link), {{"rob", formats::to_text(rob.source_id)}}, formats::to_text(link.fid),
                        formats::link_name(link.fid));
      }
    }
  };
  using Link = FragmentBuilder::Link;
  each("rodeo_link_active", "gauge", "1 if the link is in the build, 0 if it was removed.",
       [](const Link& l) { return l.state == LinkState::active ? 1 : 0; });
  each("rodeo_link_chunks_total", "counter", "Chunks received from a link.", [](const Link& l) { return l.chunks; });
  each("rodeo_link_missing_total", "counter", "Events closed without the link.", [](const Link& l) { return l.missing; });
  each("rodeo_link_left_out_total", "counter", "Events built without the link because it was removed.",
       [](const Link& l) { return l.left_out; });
  each("rodeo_link_bad_total", "counter",
       "Chunks of a link that are corrupt, late, duplicate, out of sequence or malformed.",
       [](const Link& l) { return l.bad; });

  const auto each_place = [&](std::string_view name, std::string_view type, std::string_view help, auto value) {
    out.metric(name, type, help);
    for (const auto& rob : status.robs) {
      for (std::size_t i = 0; i < rob.places.size(); ++i) {
        const Fid fid = rob.builder.links[i].fid;
        out.link_sample(value(rob.places[i]), {{"rob", formats::to_text(rob.source_id)}}, formats::to_text(fid),
                        formats::link_name(fid));
      }
    }
  };
  each_place("rodeo_link_in_doubt_total", "counter",
             "Chunks that are flagged because the place of their link was not proven.",
             [](const KnownPlace& p) { return p.in_doubt; });
  each_place("rodeo_link_moved_total", "counter", "Times that another place was found to be the link's.",
             [](const KnownPlace& p) { return p.moved; });
  each_place("rodeo_link_out_of_step", "gauge", "1 if the BCIDs of the link agree with no place where it can be.",
             [](const KnownPlace& p) { return p.out_of_step ? 1 : 0; });
}

void add_consumers(PrometheusText& out, const ReadoutStatus& status) {
  const auto each = [&](std::string_view name, std::string_view type, std::string_view help, auto value) {
    out.metric(name, type, help);
    for (const auto& consumer : status.consumers) out.sample(value(consumer), {{"consumer", consumer.name}});
  };
  using Status = FragmentConsumer::Status;
  each("rodeo_consumer_fragments_total", "counter", "Fragments consumed.", [](const Status& s) { return s.consumed; });
  each("rodeo_consumer_stalls_total", "counter", "Times that a fragment found the queue full.",
       [](const Status& s) { return s.stalls; });
  each("rodeo_consumer_queue_fill_ratio", "gauge", "Fill of the queue, 0 to 1.",
       [](const Status& s) { return s.queue_fill; });
  each("rodeo_consumer_cpu_seconds_total", "counter", "CPU time of the consumer's threads.",
       [](const Status& s) { return s.cpu_seconds; });
  each("rodeo_consumer_failed", "gauge", "1 if the consumer failed and the run has to stop.",
       [](const Status& s) { return s.failure.empty() ? 0 : 1; });
  out.metric("rodeo_consumer_counter", "untyped", "Counters that a consumer offers by name.");
  for (const auto& consumer : status.consumers) {
    for (const NamedCounter& counter : consumer.counters)
      out.sample(counter.value, {{"consumer", consumer.name}, {"counter", counter.name}});
  }
}

}  // namespace

std::string prometheus_text(const ReadoutSettings& settings, const ReadoutStatus& status) {
  PrometheusText out(process::Labels{{"readout", settings.name}});
  out.metric("rodeo_run_number", "gauge", "Number of the run; 0 while a readout is held.");
  out.sample(status.run_number);
  out.metric("rodeo_run_seconds", "gauge", "Time since the start of the input.");
  out.sample(status.seconds);
  out.metric("rodeo_input_counter", "untyped",
             "Counters that the input offers by name: sent chunks, accepted and vetoed triggers, faults on demand.");
  for (const NamedCounter& counter : status.input) out.sample(counter.value, {{"counter", counter.name}});
  out.metric("rodeo_input_cpu_seconds_total", "counter", "CPU time of the input's own threads.");
  out.sample(status.input_cpu_seconds);
  out.metric("rodeo_latency_seconds", "gauge",
             "From the hand-over of an event's last data to its first consumer, over the run.");
  if (status.latency.measured()) {
    out.sample(status.latency.p50_us * 1e-6, {{"quantile", "0.5"}});
    out.sample(status.latency.p99_us * 1e-6, {{"quantile", "0.99"}});
    out.sample(status.latency.max_us * 1e-6, {{"quantile", "1"}});
  }
  out.metric("rodeo_limited_by", "gauge", "1 for the stage whose back-pressure the others feel now.");
  out.sample(1, {{"stage", status.limited_by}});
  add_robs(out, status);
  add_links(out, status);
  add_consumers(out, status);
  return out.take();
}

}  // namespace rodeo::readout
