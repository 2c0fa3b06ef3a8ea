// `rodeo events`: shows the events of a running readout in another terminal (docs/reference/formats/sampling.md).
#include <algorithm>
#include <cstdio>
#include <ctime>

#include <fmt/format.h>

#include "base/sentence.h"
#include "cli/data.h"
#include "cli/events.h"
#include "cli/verbs.h"
#include "formats/event_names.h"
#include "formats/full_event.h"
#include "formats/rob.h"
#include "formats/rod_data.h"
#include "process/stop_signals.h"
#include "readout/consumer/sample_client.h"

namespace rodeo::cli {
namespace {

using readout::EventSubscriber;
using readout::Sample;
using readout::SampleClient;

struct EventsOptions {
  std::string name;
  readout::EventSubscriberSettings from;
  bool data = false;
  std::uint64_t count = 0;
  bool all = false;
  std::uint64_t prescale = 1;
  bool incomplete = false;
  std::chrono::nanoseconds patience{0};
  OutputFormat format = OutputFormat::table;  ///< for tail
  std::string dump_format = "tree";           ///< for show
};

/// The contents of an event's line.
struct EventSummary {
  L1Id l1id;
  std::uint32_t bcid = 0;
  std::uint32_t trigger_type = 0;
  std::uint32_t source_id = 0;
  std::uint32_t status = 0;
  std::uint32_t missing = 0;
  std::uint32_t removed = 0;
  std::uint64_t chunks = 0;
  std::uint64_t payload_bytes = 0;
  std::string problem;  ///< empty: the whole event decodes
};

EventSummary summary_of(std::span<const std::byte> bytes) {
  EventSummary out;
  const auto event = formats::decode_full_event(bytes);
  if (!event) {
    out.problem = event.error().message();
    return out;
  }
  out.l1id = event->l1id;
  out.bcid = event->bcid;
  out.trigger_type = event->trigger_type;
  if (!event->checksum_holds()) out.problem = "the checksum does not hold";
  const auto rob = formats::decode_rob(event->payload.bytes());
  const auto rod = rob ? rob->rod() : std::unexpected(rob.error());
  if (!rod) {
    out.problem = rod.error().message();
    return out;
  }
  out.source_id = rob->source_id.value;
  if (!rod->status.empty()) out.status = rod->status[0];
  if (const auto links = formats::absent_links(rod->status)) {
    out.missing = links->missing;
    out.removed = links->removed();
  } else {
    out.problem = "the status words on missing and removed links contradict each other";
  }
  out.payload_bytes = rod->data.bytes().size();
  const auto walked = formats::for_each_chunk_record(rod->data.bytes(), [&](const formats::ChunkRecord&) { ++out.chunks; });
  if (!walked) out.problem = walked.error().message();
  return out;
}

std::string time_text(std::uint64_t unix_ns) {
  const auto seconds = static_cast<std::time_t>(unix_ns / 1'000'000'000);
  std::tm local{};
  ::localtime_r(&seconds, &local);
  return fmt::format("{:02}:{:02}:{:02}.{:03}", local.tm_hour, local.tm_min, local.tm_sec, unix_ns / 1'000'000 % 1000);
}

Json json_of(const Sample& sample, const EventSummary& event) {
  return Json::object({{"sequence", sample.header.sequence},
                       {"unix_seconds", static_cast<double>(sample.header.unix_ns) * 1e-9},
                       {"missed", sample.header.missed},
                       {"l1id", event.l1id.value},
                       {"bcid", event.bcid},
                       {"trigger_type", event.trigger_type},
                       {"source_id", event.source_id},
                       {"status", event.status},
                       {"missing_links", event.missing},
                       {"removed_links", event.removed},
                       {"chunks", event.chunks},
                       {"payload_bytes", event.payload_bytes},
                       {"problem", event.problem}});
}

void print_tree(const Sample& sample, const EventsOptions& options) {
  const formats::EventDump tree =
      formats::dump_event(sample.event,
                          fmt::format("trigger {}: {} bytes, sampled at {}", sample.header.sequence, sample.event.size(),
                                      time_text(sample.header.unix_ns)),
                          sample.header.ids);
  if (options.dump_format == "json") {
    print(dump_json(tree.root).dump() + "\n");
  } else {
    print(formats::render_dump(tree.root,
                               options.all ? formats::DumpLimits{.chunks = 0, .hex_lines = 0} : formats::DumpLimits{}));
  }
}

void print_line(const Sample& sample, const EventSummary& event, OutputFormat format) {
  const std::string status = formats::joined_or_ok(formats::status_names(event.status, formats::FragmentKind::rod));
  if (format == OutputFormat::json) {
    print(json_of(sample, event).dump(0) + "\n");
  } else if (format == OutputFormat::csv) {
    print(fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}\n", sample.header.unix_ns, sample.header.sequence,
                      event.l1id.value, event.bcid, event.trigger_type, event.source_id, event.status, event.missing,
                      event.removed, event.chunks, event.payload_bytes, sample.header.missed));
  } else {
    const bool colours = colours_on_stdout();
    const Style style = !event.problem.empty()                    ? Style::bad
                        : event.status != 0 || event.missing != 0 ? Style::warning
                                                                  : Style::good;
    const std::string notes = (event.missing != 0 ? ", " + base::counted(event.missing, "link") + " missing" : "") +
                              (event.removed != 0 ? ", " + base::counted(event.removed, "link") + " removed" : "") +
                              (event.problem.empty() ? "" : ", " + event.problem);
    print(fmt::format("{}  L1 id {:#010x}  BCID {:4}  trigger {:#04x}  ROB {:#010x}  {:5} chunks  {:7} B  {}{}\n",
                      time_text(sample.header.unix_ns), event.l1id.value, event.bcid, event.trigger_type, event.source_id,
                      event.chunks, event.payload_bytes, styled(status + notes, style, colours),
                      sample.header.missed > 0
                          ? styled(fmt::format("  ({} not shown)", sample.header.missed), Style::faint, colours)
                          : ""));
  }
}

/// Calls show(sample) for each selected event of a client, until `count` events were shown (0: until the run or the user
/// ends it).
template <typename Client, typename Show>
Result<ExitCode> for_each_event(Client client, const EventsOptions& options, std::uint64_t count, Show&& show) {
  const process::StopSignals signals;
  Sample sample;
  std::uint64_t seen = 0;
  std::uint64_t shown = 0;
  auto last = std::chrono::steady_clock::now();
  while (!signals.stop_requested()) {
    const auto outcome = RODEO_TRY(client.next(sample, std::chrono::milliseconds(100)));
    if (outcome == SampleClient::Outcome::end) break;
    if (outcome == SampleClient::Outcome::nothing) {
      if (options.patience.count() > 0 && std::chrono::steady_clock::now() - last > options.patience) {
        return std::unexpected(Error{"readout.no_event", "the readout runs, but no event came in time", options.name, ""});
      }
      continue;
    }
    last = std::chrono::steady_clock::now();
    const EventSummary event = summary_of(sample.event);
    if (options.incomplete && event.status == 0 && event.missing == 0) continue;
    if (seen++ % std::max<std::uint64_t>(options.prescale, 1) != 0) continue;
    show(sample, event);
    if (std::fflush(stdout) != 0 || ++shown == count) break;  // show it at once; end if stdout is closed
  }
  return ExitCode::done;
}

/// Takes events from the network if a stream is named, else from the sampler of a readout on this host.
template <typename Show>
Result<ExitCode> for_each_event(const EventsOptions& options, std::uint64_t count, Show&& show) {
  if (options.from.stream.empty())
    return for_each_event(RODEO_TRY(SampleClient::connect(options.name)), options, count, show);
  readout::EventSubscriberSettings from = options.from;
  from.monitor = !options.data;
  return for_each_event(RODEO_TRY(EventSubscriber::subscribe(from)), options, count, show);
}

void add_selection(Command& command, const std::shared_ptr<EventsOptions>& options) {
  command.option("--name", options->name, "Name of the readout; needed if several run").value_name("NAME");
  command.option("--prescale", options->prescale, "Show only every N-th of the matching events").value_name("N");
  command.flag("--incomplete", options->incomplete, "Only events with missing links or a status");
  command.duration("--patience", options->patience, "Give up (exit 4) after this time without an event; 0s: never");
  add_event_source(command, options->from);
  command.flag("--data", options->data, "With --from: delay the readout rather than miss an event");
}

}  // namespace

void add_event_source(Command& command, readout::EventSubscriberSettings& from) {
  command
      .option("--from", from.stream,
              "Take events from the network: the stream of a consumer `publish`, READOUT.CONSUMER on the bus")
      .value_name("STREAM");
  command.option("--bus", from.bus, "Directory of the bus (default: this user's on this host)").value_name("DIR");
  command.choice("--provider", from.provider, {"auto", "tcp", "shm", "verbs"}, "Network provider");
  command.option("--secret-file", from.secret_file, "File with the publisher's secret").value_name("FILE");
}

void add_events(Command& root) {
  Command& events = root.verb("events", "Shows sampled events of a running readout");

  auto tail_options = std::make_shared<EventsOptions>();
  Command& tail = events.verb("tail", "One line for each sampled event");
  tail.example("rodeo events tail", "every sampled event of the readout on this machine")
      .example("rodeo events tail --incomplete --events 10", "the next ten incomplete events")
      .example("rodeo events tail --from readout.publish --bus /shared/bus", "of a readout on another host");
  tail.paragraph(
      "The readout needs an `event_sampler` among its consumers, or with --from a consumer `publish`. Without --data, this "
      "command never slows the readout: it misses the events that it does not take in time, and the next line shows "
      "their number.");
  tail.option("-n,--events", tail_options->count, "End after N events; 0: with the run or Ctrl-C")
      .value_name("N")
      .renamed_from("--count");
  add_selection(tail, tail_options);
  tail.output(tail_options->format);
  tail.run([options = tail_options]() -> Result<ExitCode> {
    if (options->format == OutputFormat::csv) {
      print(
          "unix_ns,sequence,l1id,bcid,trigger_type,source_id,status,missing_links,removed_links,chunks,payload_bytes,"
          "missed\n");
    }
    return for_each_event(*options, options->count, [&](const Sample& sample, const EventSummary& event) {
      print_line(sample, event, options->format);
    });
  });

  auto show_options = std::make_shared<EventsOptions>();
  show_options->count = 1;
  Command& show = events.verb("show", "Shows a sampled event as a tree, like `rodeo data dump` for files");
  show.example("rodeo events show", "the next event")
      .example("rodeo events show --incomplete --all", "the next incomplete event, with every chunk and byte")
      .example("rodeo events show -o json", "for programs");
  show.option("-n,--events", show_options->count, "Events to show").value_name("N").renamed_from("--count");
  add_selection(show, show_options);
  show.flag("--all", show_options->all, "All chunks and bytes; JSON always has all");
  show.choice("-o,--output", show_options->dump_format, {"tree", "json"}, "Format on stdout");
  show.run([options = show_options]() -> Result<ExitCode> {
    return for_each_event(*options, options->count,
                          [&](const Sample& sample, const EventSummary&) { print_tree(sample, *options); });
  });

  add_events_record(events);
  add_events_monitor(events);
}

}  // namespace rodeo::cli
