// `rodeo data`: the contents of event files, recordings of FELIX blocks and dumps of superpages. This file: the noun, `info`
// and `list`.
#include "cli/data.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "base/parallel.h"
#include "base/units.h"
#include "cli/data_file.h"
#include "cli/data_progress.h"
#include "cli/verbs.h"
#include "formats/event_check.h"
#include "formats/event_names.h"
#include "formats/full_event.h"
#include "formats/header_checks.h"
#include "formats/recording_info.h"
#include "formats/rob.h"
#include "formats/superpage_dump.h"
#include "readout/run/run_record.h"
#include "storage/event_file_reader.h"

namespace rodeo::cli {
namespace {

using namespace formats;
using namespace storage;

struct FileOptions {
  std::vector<std::string> files;
  OutputFormat format = OutputFormat::table;
};

std::string crc_text(FileCrc crc) {
  switch (crc) {
    case FileCrc::holds: return "holds";
    case FileCrc::wrong: return "does NOT hold";
    case FileCrc::open: return "open: the file was never closed";
    case FileCrc::missing: return "missing";
    case FileCrc::foreign: return "none: not a file of Rodeo";
  }
  return "";
}

Cell number_or_none(std::string_view text) {
  std::uint64_t value = 0;
  const bool good = std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc{};
  return good ? Cell(value) : Cell(Json());
}

std::string names_of(const Json& plugins) {
  std::string names;
  for (const Json& plugin : plugins.elements()) {
    names += (names.empty() ? "" : ", ") + member(plugin, "name").string();
  }
  return names.empty() ? "none" : names;
}

// "INCOMPLETE: 12 of 100 fragments incomplete, chunks lost: late 7"
std::string verdict_of(const Json& run) {
  const auto count = [&](std::string_view key) { return grouped(member(member(run, "fragments"), key).unsigned_integer()); };
  std::string text = fmt::format("{}: {} of {} fragments incomplete, {} lacking removed links",
                                 member(member(run, "run"), "condition").string(), count("incomplete"), count("built"),
                                 count("without_removed_links"));
  std::string lost;
  for (const auto& [name, value] : member(member(run, "chunks"), "lost").members())
    lost += fmt::format("{} {} {}", lost.empty() ? "" : ",", name, grouped(value.unsigned_integer()));
  return text + (lost.empty() ? ", no chunk lost" : "; chunks lost:" + lost);
}

// The record Rodeo-Ids as text for people.
std::string ids_text(std::string_view value) {
  const auto mark = IdsMark::parse(value);
  if (!mark) return std::string(value) + " (not understood)";
  if (!mark->layout) return "global ids do not repeat";
  return fmt::format("global ids do not repeat; L1 ids have {}",
                     mark->layout->has_resets ? "24 bits and a reset counter"
                                              : fmt::format("{} bits, no reset counter", mark->layout->bits));
}

// Every event file has the same titles and keys, so that several files make one CSV table.
Properties describe_event_file(const DataFile& file, const EventFileReport& report, readout::RunRecords& runs) {
  const DecodedFileHeader& header = *report.header;
  const bool closed = report.end.has_value();
  const FileEnd end = report.end.value_or(FileEnd{});
  const auto opened = header.opened.text();
  Properties p;
  p.add("file", "file", file.path);
  p.add("kind", "kind", Cell("event_file", fmt::format("event file, version {}", header.version)));
  p.add("size", "size_bytes", Cell(report.bytes, size_text(report.bytes)));
  if (report.unread) {
    p.add("closed", "closed",
          Cell(Json(),
               fmt::format("not known: byte {}: {} (see `rodeo data recover`)", report.unread->offset, report.unread->what),
               Style::bad));
  } else {
    p.add("closed", "closed",
          Cell(closed, closed ? "yes" : "no: the end record is missing (see `rodeo data recover`)",
               closed ? Style::plain : Style::bad));
  }
  p.add("events", "events",
        Cell(report.blocks, grouped(report.blocks) + (report.unread ? " before the damage; more may follow" : "")));
  const EventTotals& totals = report.totals;
  const auto add_count = [&](const char* title, const char* key, std::uint64_t count) {
    p.add(title, key, Cell(count, grouped(count), count > 0 ? Style::warning : Style::plain));
  };
  add_count("events with unproven headers", "unproven_headers", totals.unproven_headers);
  p.add("run number", "run_number", header.run.run_number);
  p.add("lumi block", "lumi_block", number_or_none(header.free_string("LumiBlock")));
  p.add("stream", "stream", std::string(header.free_string("Stream")));
  p.add("project", "project", std::string(header.free_string("Project")));
  p.add("application", "application", header.application);
  p.add("file number", "file_number", header.file_number);
  p.add("last of its sequence", "last_of_sequence", closed ? Cell(end.last_file == 1) : Cell(Json()));
  p.add("events in the sequence so far", "events_in_sequence", closed ? Cell(end.blocks_in_sequence) : Cell(Json()));
  p.add("opened", "opened", Cell(opened, opened + " local time"));
  p.add("closed at", "closed_at", closed ? Cell(end.closed.text(), end.closed.text() + " local time") : Cell(Json()));
  p.add("GUID", "guid", std::string(header.free_string("GUID")));
  p.add("Adler-32 of the file", "adler32", fmt::format("{:08x}", report.adler32));
  p.add("CRC-32 of the file", "crc32",
        Cell(crc_text(report.crc), {}, report.crc == FileCrc::wrong ? Style::bad : Style::plain));
  const std::string payload(header.free_string(kProvableKey));
  p.add("payload", "payload", payload.empty() ? Cell(Json(), "not provable") : Cell(payload));
  const std::string_view ids = header.free_string(kIdsKey);
  p.add("ids", "ids", ids.empty() ? Cell(Json(), "not known") : Cell(std::string(ids), ids_text(ids)));
  const std::string recovered(header.free_string(kRecoveredKey));
  p.add("recovered", "recovered", recovered.empty() ? Cell(Json(), "no") : Cell(recovered));
  add_count("incomplete ROBs", "incomplete_robs", totals.incomplete_robs);
  add_count("links missing in them", "missing_links", totals.missing_links);
  add_count("ROBs without links that were removed", "robs_without_removed_links", totals.robs_without_removed);
  add_count("links removed in them", "removed_links", totals.removed_links);
  const std::string software(header.free_string(readout::kSoftwareKey));
  p.add("written by", "software", software.empty() ? Cell(Json(), "not known") : Cell("Rodeo " + software));
  const auto parsed = [&](std::string_view key) {
    const auto value = Json::parse(header.free_string(key));
    return value ? *value : Json();
  };
  const Json plugins = parsed(readout::kPluginsKey);
  p.add("plug-ins", "plugins", Cell(plugins, names_of(plugins)));
  const std::string hash(header.free_string(readout::kConfigurationHashKey));
  p.add("SHA-256 of the configuration", "configuration_sha256", hash.empty() ? Cell(Json(), "not known") : Cell(hash));
  const Json configuration = parsed(readout::kConfigurationKey);
  p.add("configuration", "configuration",
        Cell(configuration, configuration.is_null()
                                ? "not known"
                                : fmt::format("{}; -o json shows them", counted(configuration.members().size(), "value"))));
  std::vector<std::string> links;
  for (const std::string& text : header.free_strings) {
    if (text.starts_with(kLinksKey)) links.push_back(text.substr(kLinksKey.size() + 1));
  }
  p.add("links", "links",
        Cell(Json::array_of(links),
             links.empty() ? "not known" : fmt::format("of {}; -o json shows them", counted(links.size(), "ROB"))));
  const std::optional<Json> run = runs.report_of(file.path);
  p.add("run", "run", run ? Cell(*run, verdict_of(*run)) : Cell(Json(), readout::why_no_record(file.path)));
  return p;
}

Properties describe_recording(const DataFile& file, const RecordingInfo& info) {
  std::uint64_t flagged = 0;
  std::uint64_t by_card = 0;
  for (const auto& elink : info.elinks) {
    flagged += elink.flagged_chunks;
    by_card += elink.card_flagged_chunks;
  }
  Properties p;
  p.add("file", "file", file.path);
  p.add("kind", "kind", Cell("block_recording", "recording of FELIX blocks"));
  p.add("size", "size_bytes", Cell(file.bytes().size(), size_text(file.bytes().size())));
  p.add("block size", "block_bytes", Cell(info.format.block_bytes, base::format_size(info.format.block_bytes)));
  p.add("trailers", "trailer_bits",
        Cell(info.format.trailer_bytes() * 8, fmt::format("{} bits", info.format.trailer_bytes() * 8)));
  p.add("blocks", "blocks", Cell(info.blocks, grouped(info.blocks)));
  p.add("bytes behind the last block", "rest_bytes", info.rest_bytes);
  p.add("E-links", "elinks", info.elinks.size());
  p.add("chunks", "chunks", Cell(info.counter(BlockCounter::chunks), grouped(info.counter(BlockCounter::chunks))));
  p.add("chunk bytes", "chunk_bytes",
        Cell(info.counter(BlockCounter::chunk_bytes), size_text(info.counter(BlockCounter::chunk_bytes))));
  p.add("flagged chunks", "flagged_chunks", flagged);
  p.add("flagged by the card", "card_flagged_chunks",
        Cell(by_card, grouped(by_card), by_card > 0 ? Style::warning : Style::plain));
  for (const BlockCounter flag : kBlockFlags) {
    const std::string name(kBlockCounterInfo[static_cast<std::size_t>(flag)].name);
    p.add("  " + name, name, info.counter(flag));
  }
  p.add("sound", "sound", Cell(info.sound(), info.sound() ? "yes" : "no", info.sound() ? Style::good : Style::bad));
  return p;
}

Properties describe_dump(const DataFile& file, const SuperpageDumpInfo& info) {
  std::uint64_t payload = 0;
  std::uint64_t frames = 0;
  for (const auto& link : info.links) {
    payload += link.payload_bytes;
    frames += link.heartbeat_frames;
  }
  const std::uint64_t pages = info.counter(SuperpageCounter::pages);
  Properties p;
  p.add("file", "file", file.path);
  p.add("kind", "kind", Cell("superpage_dump", "dump of the superpages of a CRU or C-RORC"));
  p.add("size", "size_bytes", Cell(file.bytes().size(), size_text(file.bytes().size())));
  p.add("pages", "pages", Cell(pages, grouped(pages)));
  p.add("links", "links", info.links.size());
  p.add("payload", "payload_bytes", Cell(payload, size_text(payload)));
  p.add("pattern of the payload", "pattern", std::string(pattern_name(info.pattern)));
  p.add("heartbeat frames", "heartbeat_frames", Cell(frames, grouped(frames)));
  p.add("packet counters", "packet_counters",
        info.shared_packet_counters ? Cell("shared", "links share one") : Cell("own", "each link has its own"));
  p.add("orbits from frame to frame", "orbit_step",
        info.orbit_step               ? Cell(*info.orbit_step)
        : info.orbit_steps.size() > 1 ? Cell(Json(), fmt::format("{}", fmt::join(info.orbit_steps, " or ")))
                                      : Cell(Json(), info.orbits_differ ? "differ" : "unknown"));
  p.add("orbits of a time frame", "time_frame_orbits",
        info.time_frame_orbits == 0 ? Cell(Json(), "unknown") : Cell(info.time_frame_orbits));
  p.add("sound", "sound", Cell(info.sound(), info.sound() ? "yes" : "no", info.sound() ? Style::good : Style::bad));
  return p;
}

Result<ExitCode> info(const FileOptions& options) {
  std::vector<Json> objects;
  readout::RunRecords runs;
  bool first = true;
  const auto show = [&](const Properties& properties) {
    if (options.format != OutputFormat::table) return objects.push_back(properties.json());
    if (!std::exchange(first, false)) print("\n");
    properties.print(OutputFormat::table);
  };
  const std::vector<std::string> files = RODEO_TRY(expanded(options.files));
  auto outcome = for_each_file(files, [&](const std::string& path) -> Result<ExitCode> {
    const auto file = RODEO_TRY(open_data_file(path));
    if (file.kind == FileKind::block_recording) {
      const auto recording = inspect_recording(file.bytes(), ProgressLine("reading " + path, file.bytes().size()).told());
      RODEO_TRY(file.mapped.check());
      if (!recording) return std::unexpected(recording.error().within(path));
      show(describe_recording(file, *recording));
      return ExitCode::done;
    }
    if (file.kind == FileKind::superpage_dump) {
      const SuperpageDumpInfo dump =
          inspect_superpage_dump(file.bytes(), 1, ProgressLine("reading " + path, file.bytes().size()).told());
      RODEO_TRY(file.mapped.check());
      show(describe_dump(file, dump));
      return ExitCode::done;
    }
    ProgressLine line("reading " + path, file.bytes().size(), 2);
    const EventFileReport report =
        verify_event_file(file.bytes(), {.prove = false, .threads = base::usable_cores(), .progress = line.told()});
    RODEO_TRY(file.mapped.check());
    if (!report.header) {
      const Finding& finding = report.findings.listed().front();
      return std::unexpected(damaged_error("data.header", fmt::format("byte {}: {}", finding.offset, finding.what), file));
    }
    show(describe_event_file(file, report, runs));
    return ExitCode::done;
  });
  if (options.format == OutputFormat::json) print(Json::array_of(objects).dump() + "\n");
  if (options.format == OutputFormat::csv) print_csv(objects, true);
  return outcome;
}

struct ListOptions : FileOptions {
  bool all = false;
};

constexpr std::uint64_t kListedByDefault = 50;

// The table for people names the file only if there are several.
Table event_table(bool with_file) {
  std::vector<Column> columns;
  if (with_file) columns.push_back({"file", "file"});
  const Column of_event[] = {
      {"event", "event"}, {"offset", "offset_bytes"}, {"size [B]", "size_bytes"},       {"ECR", "ecr"},
      {"L1 id", "l1id"},  {"BCID", "bcid"},           {"trigger type", "trigger_type"}, {"global id", "global_id"},
      {"ROBs", "robs"},   {"status", "status"}};
  columns.insert(columns.end(), std::begin(of_event), std::end(of_event));
  return Table(columns);
}

// The list's text for events without a known fault.
std::string status_of(const FullEventView& event, std::span<const std::string> names, FileCrc crc, HeaderProof proof) {
  std::vector<std::string> said(names.begin(), names.end());
  if (proof != HeaderProof::holds && crc == FileCrc::wrong && !event.header_not_proven())
    said.push_back("header not proven");
  if (crc != FileCrc::holds && event.checksum_type != ChecksumType::adler32) said.push_back("not verified");
  return joined_or_ok(said);
}

void add_event_row(Table& table, const std::string& path, bool with_file, const EventBlock& block,
                   std::span<const std::byte> bytes, EventChecker& checker, FileCrc crc, HeaderProof proof,
                   const IdLayout& ids) {
  std::vector<Cell> row;
  if (with_file) row.emplace_back(path);
  row.insert(row.end(), {block.number, block.offset, block.stored.size()});
  Findings damage;
  checker.check(bytes, block.offset + kSeparatorBytes, fmt::format("event {}", block.number), damage);
  const Decoded<FullEventView> event = decode_full_event(bytes);
  std::vector<std::string> names;
  std::vector<std::byte> buffer;
  std::uint64_t robs = 0;
  if (event) {
    std::uint32_t rod_status = 0;
    if (const auto payload = event->robs(buffer)) {
      (void)for_each_rob(*payload, [&](const RobView& rob, std::size_t) {
        ++robs;
        const auto rod = rob.rod();
        if (rod && !rod->status.empty()) rod_status |= rod->status[0] & fragment_status::kLinksRemoved;
      });
    }
    names = status_names(event->status.empty() ? 0 : event->status[0], FragmentKind::event);
    for (std::string& name : status_names(rod_status, FragmentKind::rod)) names.push_back(std::move(name));
    const Cell ecr = ids.has_resets ? Cell(event->l1id.ecr()) : Cell(Json(), "-");
    row.insert(row.end(), {ecr, ids.shown(event->l1id), event->bcid, event->trigger_type, event->global_id, robs});
  } else {
    row.insert(row.end(), 6, Json());
  }
  if (damage.total() > 0) {
    row.emplace_back("damaged", "damaged: " + damage.listed().front().what, Style::bad);
  } else {
    const std::string text = status_of(*event, names, crc, proof);
    row.emplace_back(text, std::string(), text == "ok" ? Style::plain : Style::warning);
  }
  table.add_row(std::move(row));
}

Result<ExitCode> list_events(const DataFile& file, bool all, bool with_file, Table& table) {
  auto reader = EventFileReader::open(file.bytes());
  if (!reader) return std::unexpected(damaged_error("data.header", reader.error().message(), file));
  const FileCrc crc = check_file_crc(file.bytes(), reader->header());
  const auto checks = crc == FileCrc::holds ? std::vector<PlacedHeaderChecks>() : find_header_checks(file.bytes());
  if (crc == FileCrc::wrong && !checks.empty())
    print_note(
        fmt::format("{}: the CRC-32 of the whole file does not hold; the checks of the headers show which events are proven",
                    file.path));
  if (crc != FileCrc::holds && checks.empty())
    print_note(fmt::format("{}: the file has no valid CRC-32: nothing proves the headers of its events", file.path));
  EventChecker checker(expectations_of(reader->header(), crc));
  const IdLayout ids = layout_of(reader->header()).value_or(kOneNumber);
  std::vector<std::byte> buffer;
  ProgressLine line("listing " + file.path, all ? file.bytes().size() : 0);
  for (std::uint64_t listed = 0;; ++listed) {
    const std::uint64_t before = reader->position();
    const auto block = reader->next();
    if (!block) return std::unexpected(damaged_error("data.damaged", block.error().message(), file));
    if (!*block) return ExitCode::done;
    if (!all && listed == kListedByDefault) {
      print_note(fmt::format("{}: the first {} events; --all lists every event", file.path, kListedByDefault));
      return ExitCode::done;
    }
    const std::span<const std::byte> event = reader->event(**block, buffer);
    const HeaderProof proof = prove_header(checks, (*block)->offset, (*block)->number, event);
    add_event_row(table, file.path, with_file, **block, event, checker, crc, proof, ids);
    line.advance(reader->position() - before);
  }
}

Table elink_table() {
  return Table({{"file", "file"},
                {"E-link", "elink"},
                {"link", "link"},
                {"blocks", "blocks"},
                {"chunks", "chunks"},
                {"bytes", "chunk_bytes"},
                {"smallest [B]", "smallest_chunk_bytes"},
                {"largest [B]", "largest_chunk_bytes"},
                {"flagged", "flagged_chunks"},
                {"by the card", "card_flagged_chunks"}});
}

Table page_link_table() {
  return Table({{"file", "file"},
                {"link", "link"},
                {"CRU", "cru"},
                {"endpoint", "endpoint"},
                {"FEE id", "fee_id"},
                {"pages", "pages"},
                {"payload [B]", "payload_bytes"},
                {"heartbeat frames", "heartbeat_frames"},
                {"first orbit", "first_orbit"},
                {"last orbit", "last_orbit"}});
}

Result<ExitCode> list_elinks(const DataFile& file, Table& table) {
  const auto recording = RODEO_TRY_WITHIN(
      inspect_recording(file.bytes(), ProgressLine("listing " + file.path, file.bytes().size()).told()), file.path);
  if (!recording.sound())
    print_note(file.path + ": parts of it are damaged: `rodeo data verify` lists the faults and their places");
  for (const auto& elink : recording.elinks) {
    table.add_row({file.path, Cell(elink.elink, fmt::format("{:#05x}", elink.elink)), elink.elink >> 6, elink.blocks,
                   elink.chunks, elink.chunk_bytes, elink.smallest_chunk_bytes, elink.largest_chunk_bytes,
                   Cell(elink.flagged_chunks, {}, elink.flagged_chunks > 0 ? Style::warning : Style::plain),
                   elink.card_flagged_chunks});
  }
  return ExitCode::done;
}

Result<ExitCode> list(const ListOptions& options) {
  const std::vector<std::string> files = RODEO_TRY(expanded(options.files));
  const bool with_file = files.size() > 1 || options.format != OutputFormat::table;
  Table events = event_table(with_file);
  Table elinks = elink_table();
  Table page_links = page_link_table();
  auto outcome = for_each_file(files, [&](const std::string& path) -> Result<ExitCode> {
    const auto file = RODEO_TRY(open_data_file(path));
    Result<ExitCode> listed = ExitCode::done;
    if (file.kind == FileKind::event_file) {
      listed = list_events(file, options.all, with_file, events);
    } else if (file.kind == FileKind::block_recording) {
      listed = list_elinks(file, elinks);
    } else {
      const auto dump = inspect_superpage_dump(file.bytes(), 1, ProgressLine("listing " + path, file.bytes().size()).told());
      for (const auto& link : dump.links) {
        page_links.add_row({path, link.link, link.cru, link.endpoint, Cell(link.fee_id, fmt::format("{:#x}", link.fee_id)),
                            link.pages, link.payload_bytes, link.heartbeat_frames, link.first_orbit, link.last_orbit});
      }
    }
    RODEO_TRY(file.mapped.check());
    return listed;
  });
  const bool nothing = events.rows() + elinks.rows() + page_links.rows() == 0;
  if (events.rows() > 0 || (nothing && outcome)) events.print(options.format);
  if (elinks.rows() > 0) elinks.print(options.format);
  if (page_links.rows() > 0) page_links.print(options.format);
  return outcome;
}

}  // namespace

void add_data(Command& root) {
  Command& data = root.verb("data",
                            "Event files, recordings of FELIX blocks, dumps of superpages: inspect, verify, recover, "
                            "make, merge, filter, compare, convert, plot");

  auto info_options = std::make_shared<FileOptions>();
  Command& info_verb = data.verb("info", "Describes a file: run, stream, dates, number of events, checksums");
  info_verb.example("rodeo data info FILE", "run, stream, dates, events, Adler-32 for the catalogue");
  info_verb.option("FILE", info_options->files, "Event files, recordings of FELIX blocks, dumps of superpages").required();
  info_verb.output(info_options->format);
  info_verb.run([info_options] { return info(*info_options); });

  auto list_options = std::make_shared<ListOptions>();
  Command& list_verb =
      data.verb("list", "One line for each event (event file), E-link (recording) or link (dump of superpages)");
  list_verb.example("rodeo data list FILE --all -o csv", "every event, for a spreadsheet");
  list_verb.option("FILE", list_options->files, "Event files, recordings of FELIX blocks, dumps of superpages").required();
  list_verb.flag("--all", list_options->all, fmt::format("Every event, not only the first {} of a file", kListedByDefault));
  list_verb.output(list_options->format);
  list_verb.run([list_options] { return list(*list_options); });

  add_data_dump(data);
  add_data_verify(data);
  add_data_recover(data);
  add_data_record(data);
  add_data_merge(data);
  add_data_filter(data);
  add_data_diff(data);
  add_data_convert(data);
}

}  // namespace rodeo::cli
