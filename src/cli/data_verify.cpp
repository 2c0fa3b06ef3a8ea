// `rodeo data verify`: checks that a file is unchanged. Three answers: sound; damaged, and where; not ours or of another
// version, and which program reads it.
#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <set>

#include "base/parallel.h"
#include "base/units.h"
#include "cli/data.h"
#include "cli/data_file.h"
#include "cli/data_progress.h"
#include "formats/recording_info.h"
#include "formats/superpage_dump.h"
#include "readout/run/run_record.h"
#include "storage/file_recover.h"

namespace rodeo::cli {
namespace {

using namespace formats;
using namespace storage;

struct DataVerifyOptions {
  std::vector<std::string> files;
  std::optional<std::uint64_t> seed;
  std::optional<unsigned> threads;
  OutputFormat format = OutputFormat::table;
};

// The outcome for one file of any kind.
struct Outcome {
  std::string path;
  std::string kind;
  std::uint64_t bytes = 0;
  bool sound = false;
  std::optional<Error> not_ours;  ///< or of another version
  std::optional<OtherFile> other;
  std::optional<EventFileReport> events;
  std::optional<RecordingInfo> recording;
  std::optional<SuperpageDumpInfo> dump;
  Findings findings;
  std::vector<std::string> unprotected;
  std::optional<std::uint64_t> first_event;  ///< the place of the first event marker, if the file is not sound
  double seconds = 0;
};

bool from_a_card(const Outcome& outcome) { return outcome.kind == "block_recording" || outcome.kind == "superpage_dump"; }

// The counters of damage and of flags by the card: "lost_blocks", 3.
std::vector<std::pair<std::string, std::uint64_t>> oddities_of(const RecordingInfo& info) {
  std::vector<std::pair<std::string, std::uint64_t>> oddities;
  for (std::size_t i = 0; i < kBlockCounters; ++i) {
    const auto counter = static_cast<BlockCounter>(i);
    if (info.counters[i] > 0 && (is_anomaly(counter) || is_flag(counter)))
      oddities.emplace_back(kBlockCounterInfo[i].name, info.counters[i]);
  }
  return oddities;
}

// The file declares itself whole, and its format is not known here.
bool made_by_a_later_rodeo(const EventFileReport& report) {
  if (!report.header || report.crc != FileCrc::holds) return false;
  const std::string_view format = report.header->free_string(kFormatKey);
  return !format.empty() && format != "0" && format != "1";
}

Outcome check(const DataFile& file, std::optional<std::uint64_t> given_seed, unsigned threads, const Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t seed = given_seed.value_or(1);
  Outcome outcome;
  outcome.path = file.path;
  outcome.kind = file.kind == FileKind::other_version ? "other_version"
                 : file.kind == FileKind::foreign     ? "foreign"
                                                      : "empty";
  outcome.bytes = file.bytes().size();
  const auto twice = [&](std::uint64_t bytes) {
    storage::add_progress(progress, 2 * bytes);
  };  // event files are read twice, too
  if (file.kind == FileKind::event_file) {
    outcome.kind = "event_file";
    outcome.events = verify_event_file(file.bytes(), {.threads = threads, .progress = progress});
    outcome.findings = outcome.events->findings;
    outcome.unprotected = outcome.events->unprotected();
  } else if (file.kind == FileKind::block_recording) {
    outcome.kind = "block_recording";
    if (auto info = inspect_recording(file.bytes(), twice, given_seed)) {
      outcome.recording = std::move(*info);
      outcome.findings = outcome.recording->findings;
    } else {
      outcome.findings.add(0, info.error().what);
    }
    const bool proven = outcome.recording && outcome.recording->proven_chunks() > 0;
    if (!proven && given_seed)
      outcome.unprotected.push_back(fmt::format("no chunk is provable with --seed {}", *given_seed));
    if (!proven) {
      outcome.unprotected.push_back(
          "a recording has no checksum: damage inside chunks is not seen (--seed N proves recordings of `rodeo data "
          "record`)");
    }
  } else if (file.kind == FileKind::superpage_dump) {
    outcome.kind = "superpage_dump";
    outcome.dump = inspect_superpage_dump(file.bytes(), seed, twice);
    outcome.findings = outcome.dump->findings;
    if (outcome.dump->orbits_differ) {
      outcome.unprotected.push_back(
          outcome.dump->shared_packet_counters
              ? "orbits follow in different steps, and links share a packet counter: a missing whole frame is not seen"
              : "orbits follow in different steps: only the packet counters show whether a whole frame is missing");
    }
    if (outcome.dump->orbits_vary) {
      outcome.unprotected.push_back(
          outcome.dump->shared_packet_counters
              ? "triggers change the step of orbits, and links share a packet counter: a frame that all links lack is not "
                "seen"
              : "triggers change the step of orbits: a loss of a multiple of 256 pages between two frames is not seen");
    }
    outcome.unprotected.push_back(
        outcome.dump->pattern == PagePattern::unknown
            ? fmt::format("the payload has no known pattern (nor is it provable with --seed {}): only headers are checked",
                          seed)
            : "header fields without sizes, order or payload: a dump has no checksum");
  } else if (file.kind == FileKind::empty || file.kind == FileKind::zeros) {
    outcome.findings.add(0, no_data_error(file).what);
  } else {
    outcome.other = describe_other(file.bytes());
    outcome.not_ours = no_data_error(file);
  }
  if (outcome.events && made_by_a_later_rodeo(*outcome.events)) {
    outcome.kind = "other_version";
    outcome.other =
        OtherFile{"an event file of a later Rodeo", "the Rodeo that wrote it: see Rodeo-Software in its records"};
    outcome.not_ours = Error{"data.other_version", "is not readable by Rodeo: " + outcome.other->what, file.path,
                             "read by: " + outcome.other->reader};
  }
  outcome.sound = outcome.findings.total() == 0 && !outcome.not_ours;
  if (!outcome.sound && !outcome.not_ours && !from_a_card(outcome)) outcome.first_event = find_event_marker(file.bytes());
  outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

std::uint64_t card_flagged(const RecordingInfo& info) {
  std::uint64_t chunks = 0;
  for (const auto& elink : info.elinks) chunks += elink.card_flagged_chunks;
  return chunks;
}

// One of the three answers as a word.
const char* answer_of(const Outcome& outcome) {
  if (outcome.not_ours) return outcome.kind == "other_version" ? "other_version" : "not_ours";
  return outcome.sound ? "sound" : "damaged";
}

const char* verdict_of(const Outcome& outcome) {
  if (outcome.sound || outcome.not_ours) return answer_of(outcome);
  if (outcome.recording && outcome.recording->whole()) return "flagged";
  return outcome.events && outcome.events->wrong_as_written() ? "wrong_payload" : "damaged";
}

Json json_of(const Outcome& outcome) {
  Json json = Json::object({{"file", outcome.path},
                            {"kind", outcome.kind},
                            {"answer", answer_of(outcome)},
                            {"sound", outcome.sound},
                            {"verdict", verdict_of(outcome)},
                            {"size_bytes", outcome.bytes}});
  if (outcome.other) {
    json["what"] = outcome.other->what;
    json["read_by"] = outcome.other->reader;
  } else if (outcome.events) {
    const EventFileReport& report = *outcome.events;
    const EventTotals& totals = report.totals;
    json["events"] = totals.events;
    json["unproven_headers"] = totals.unproven_headers;
    json["proven_headers"] = report.proven_headers;
    json["robs"] = totals.robs;
    json["incomplete_robs"] = totals.incomplete_robs;
    json["missing_links"] = totals.missing_links;
    json["robs_without_removed_links"] = totals.robs_without_removed;
    json["removed_links"] = totals.removed_links;
    json["chunks"] = totals.chunks;
    json["proven_chunks"] = totals.proven_chunks;
    json["flagged_chunks"] = totals.flagged_chunks;
    json["wrong_chunks"] = totals.wrong_chunks;
    json["wrong_chunks_in_flagged_fragments"] = totals.wrong_in_flagged;
    json["rod_data_bytes"] = totals.rod_data_bytes;
    json["events_with_checksum"] = totals.events_with_checksum;
    json["robs_with_checksum"] = totals.robs_with_checksum;
    json["crc_holds"] = report.crc == FileCrc::foreign ? Json() : Json(report.crc == FileCrc::holds);
    json["adler32"] = fmt::format("{:08x}", report.adler32);
  } else if (outcome.recording) {
    json["blocks"] = outcome.recording->blocks;
    json["chunks"] = outcome.recording->counter(BlockCounter::chunks);
    json["card_flagged_chunks"] = card_flagged(*outcome.recording);
    json["proven_chunks"] = outcome.recording->proven_chunks();
    for (const BlockCounter flag : kBlockFlags)
      json[kBlockCounterInfo[static_cast<std::size_t>(flag)].name] = outcome.recording->counter(flag);
    Json errors = Json::object();
    for (const auto& [name, count] : oddities_of(*outcome.recording)) errors[name] = count;
    json["errors"] = std::move(errors);
  } else if (outcome.dump) {
    json["pages"] = outcome.dump->counter(SuperpageCounter::pages);
    json["links"] = outcome.dump->links.size();
    json["pattern"] = std::string(pattern_name(outcome.dump->pattern));
    json["packet_counters"] = outcome.dump->shared_packet_counters ? "shared" : "own";
    json["orbit_step"] = outcome.dump->orbit_step ? Json(*outcome.dump->orbit_step) : Json();
    Json errors = Json::object();
    for (std::size_t i = 0; i < kSuperpageCounters; ++i) {
      if (is_error(static_cast<SuperpageCounter>(i)) && outcome.dump->counters[i] > 0)
        errors[kSuperpageCounterInfo[i].name] = outcome.dump->counters[i];
    }
    json["errors"] = std::move(errors);
  }
  Json findings = Json::array();
  for (const Finding& finding : outcome.findings.listed()) {
    findings.push_back(Json::object({{"offset_bytes", finding.offset}, {"what", finding.what}}));
  }
  json["findings_total"] = outcome.findings.total();
  json["findings"] = std::move(findings);
  json["unprotected"] = Json::array_of(outcome.unprotected);
  json["seconds"] = outcome.seconds;
  return json;
}

// The checks that held, one sentence a line.
std::vector<std::string> good_news(const Outcome& outcome) {
  std::vector<std::string> lines;
  if (outcome.recording) {
    const RecordingInfo& info = *outcome.recording;
    lines.push_back(fmt::format("{}, {}, {}", counted(info.blocks, "block"), counted(info.elinks.size(), "E-link"),
                                counted(info.counter(BlockCounter::chunks), "chunk")));
    if (card_flagged(info) > 0) lines.push_back(fmt::format("{} flagged by the card", counted(card_flagged(info), "chunk")));
    if (info.proven_chunks() > 0)
      lines.push_back(fmt::format("{} proven byte by byte", counted(info.proven_chunks(), "chunk")));
    std::string in_all;
    for (const auto& [name, count] : oddities_of(info)) in_all += fmt::format(" {} {}", name, grouped(count));
    if (!in_all.empty()) lines.push_back("counted:" + in_all);
  }
  if (outcome.dump) {
    const SuperpageDumpInfo& info = *outcome.dump;
    const bool headers = info.pattern != PagePattern::cru_internal;
    lines.push_back(fmt::format("{}{}, {}", counted(info.counter(SuperpageCounter::pages), "page"),
                                headers ? ", " + counted(info.links.size(), "link") : " without headers",
                                size_text(outcome.bytes)));
    if (info.pattern != PagePattern::unknown && outcome.sound)
      lines.push_back(fmt::format("every byte of payload follows the pattern `{}`", pattern_name(info.pattern)));
    if (info.shared_packet_counters)
      lines.push_back("links share a packet counter: page numbers, stop bits and orbits show whether frames are whole");
    if (info.orbit_steps.size() > 1 || info.orbit_step.value_or(1) != 1)
      lines.push_back(fmt::format("frames come every {} orbits", fmt::join(info.orbit_steps, " or ")));
    if (headers && info.time_frame_orbits == 0)
      lines.push_back("there are fewer than two time frames: their beginnings are not checked");
  }
  if (!outcome.events) return lines;
  const EventFileReport& report = *outcome.events;
  const EventTotals& totals = report.totals;
  std::string counts = fmt::format("{}, {}", counted(totals.events, "event"), counted(totals.robs, "ROB"));
  if (totals.chunks > 0) counts += ", " + counted(totals.chunks, "chunk");
  lines.push_back(counts + ", " + size_text(outcome.bytes));
  if (totals.incomplete_robs > 0) {
    lines.push_back(fmt::format("{} flagged incomplete ({} missing), as they were built",
                                counted(totals.incomplete_robs, "ROB"), counted(totals.missing_links, "link")));
  }
  if (totals.robs_without_removed > 0) {
    lines.push_back(fmt::format("{} without links that were removed from the build ({} in all), as they were built",
                                counted(totals.robs_without_removed, "ROB"), counted(totals.removed_links, "chunk")));
  }
  if (totals.flagged_chunks > 0)
    lines.push_back(fmt::format("{} flagged, as they were built", counted(totals.flagged_chunks, "chunk")));
  if (totals.unproven_headers > 0) {
    lines.push_back(fmt::format("{} saved from a damaged file with a header that is not proven (status bit 30)",
                                counted(totals.unproven_headers, "event")));
  }
  if (report.header && !report.header->free_string(kRecoveredKey).empty())
    lines.push_back(fmt::format("recovered: {}", report.header->free_string(kRecoveredKey)));
  if (report.crc == FileCrc::holds) lines.push_back("the CRC-32 over the whole file holds");
  if (report.proven_headers > 0 && report.crc != FileCrc::holds)
    lines.push_back(fmt::format("the checks of {} hold", counted(report.proven_headers, "event header")));
  if (totals.events_with_checksum > 0 && outcome.sound) {
    lines.push_back(fmt::format("the Adler-32 of {} holds", counted(totals.events_with_checksum, "event")));
  }
  if (report.provable) {
    lines.push_back(
        fmt::format("{} proven byte by byte (seed {})", counted(totals.proven_chunks, "chunk"), report.provable->seed));
  }
  lines.push_back(fmt::format("Adler-32 of the file, for the catalogue: {:08x}", report.adler32));
  return lines;
}

void print_for_people(const Outcome& outcome) {
  const bool colours = colours_on_stdout();
  if (outcome.not_ours) {
    const bool version = outcome.kind == "other_version";
    print_folded(fmt::format("{}: {}: {}\n  read by: {}\n", outcome.path,
                             styled(version ? "OF ANOTHER VERSION" : "NOT OURS", Style::warning, colours),
                             outcome.other->what, outcome.other->reader));
    return;
  }
  const bool wrong_as_written = outcome.events && outcome.events->wrong_as_written();
  const std::string verdict = outcome.sound      ? styled("sound", Style::good, colours)
                              : wrong_as_written ? styled("WRONG PAYLOAD, as it was written", Style::bad, colours)
                              : verdict_of(outcome) == std::string_view("flagged")
                                  ? styled("FLAGGED by the card", Style::bad, colours)
                                  : styled("DAMAGED", Style::bad, colours);
  print_folded(fmt::format("{}: {}\n", outcome.path, verdict));
  for (const std::string& line : good_news(outcome)) print_folded("  " + line + "\n");
  for (const std::string& gap : outcome.unprotected)
    print_folded("  " + styled("not protected: " + gap, Style::warning, colours) + "\n");
  for (const Finding& finding : outcome.findings.listed())
    print_folded(fmt::format("  {} byte {}: {}\n", styled("✗", Style::bad, colours), finding.offset, finding.what));
  if (const std::uint64_t more = outcome.findings.total() - outcome.findings.listed().size(); more > 0)
    print_folded(fmt::format("  … and {} more\n", grouped(more)));
  if (wrong_as_written) {
    const EventTotals& totals = outcome.events->totals;
    print_note(
        fmt::format("the file is as it was written: {} wrong already then, {} of them in fragments that are flagged for "
                    "their payload; a recovery would not change this",
                    totals.wrong_chunks == 1 ? "1 chunk was" : grouped(totals.wrong_chunks) + " chunks were",
                    grouped(totals.wrong_in_flagged)));
  } else if (!outcome.sound && outcome.first_event) {
    print_note(fmt::format("`rodeo data recover {}` saves the whole events; the first event seems to begin at byte {}",
                           outcome.path, grouped(*outcome.first_event)));
  } else if (!outcome.sound && !from_a_card(outcome)) {
    print_note("it contains no event marker: there is nothing to recover");
  }
}

Result<ExitCode> verify(const DataVerifyOptions& options) {
  const unsigned threads = options.threads.value_or(base::usable_cores());
  if (threads < 1 || threads > 1024) return value_error("--threads must be 1 to 1024", "the default is one on each core");
  std::vector<Column> columns;  // of CSV
  for (const char* key : {"file", "kind", "answer", "sound", "size_bytes", "events", "chunks", "proven_chunks", "adler32",
                          "findings_total", "first_finding"})
    columns.push_back({key, key});
  Table table(columns);
  Json list = Json::array();
  std::size_t sound = 0;
  std::size_t passed_over = 0;
  std::set<ExitCode> answers;
  const std::vector<std::string> files = RODEO_TRY(expanded(options.files));
  ProgressLine line("verifying", bytes_of(files), 2);  // first pass: bytes; second pass: events
  const auto verified = [&](const std::string& path) -> Result<ExitCode> {
    line.clear();
    if (readout::is_run_record(path)) {
      print_note(path + " is the record of a run, which has no checksum: skipped");
      ++passed_over;
      return ExitCode::done;
    }
    const auto file = RODEO_TRY(open_any_file(path));
    line.say(path);
    const Outcome one = check(file, options.seed, threads, line.told());
    line.clear();
    RODEO_TRY(file.mapped.check());
    sound += one.sound ? 1 : 0;
    Json json = json_of(one);
    if (options.format == OutputFormat::table) print_for_people(one);
    if (options.format == OutputFormat::csv) {
      std::vector<Cell> row;
      for (const Column& column : columns) row.emplace_back(member(json, column.key));
      if (one.other) {
        row.back() = one.other->what;
      } else if (!one.sound) {
        row.back() = one.findings.listed().front().what;
      }
      table.add_row(std::move(row));
    }
    list.push_back(std::move(json));
    if (one.not_ours) return std::unexpected(*one.not_ours);
    return one.sound ? ExitCode::done : ExitCode::not_verified;
  };
  auto outcome = for_each_file(files, [&](const std::string& path) {
    const std::size_t before = passed_over;
    const auto answer = verified(path);
    if (passed_over == before) answers.insert(answer ? *answer : exit_code_of(answer.error().code));
    return answer;
  });
  if (answers.size() > 1) outcome = ExitCode::partial;
  if (options.format == OutputFormat::json) print(list.dump() + "\n");
  if (options.format == OutputFormat::csv) table.print(OutputFormat::csv);
  if (options.format == OutputFormat::table && files.size() > 1) {
    print_folded(fmt::format("{} of {} sound\n", sound, counted(files.size() - passed_over, "file")));
  }
  return outcome;
}

}  // namespace

void add_data_verify(Command& data) {
  auto options = std::make_shared<DataVerifyOptions>();
  Command& verb = data.verb("verify", "Proves that files are as they were written: sound; damaged, and where; or not ours");
  verb.example("rodeo data verify FILE...", "structure, totals, checksums, and every byte of provable payload");
  verb.example("rodeo data verify -o json FILE", "with every count and finding");
  verb.option("FILE", options->files, "Event files, recordings of FELIX blocks, dumps of superpages").required();
  verb.option("--seed", options->seed,
              "Seed of provable payload in recordings and dumps, whose files do not contain it (default for dumps: 1; for "
              "recordings: payload is not proven)");
  verb.option("--threads", options->threads, "Threads to check an event file (default: one on each core)").value_name("N");
  verb.output(options->format);
  verb.paragraph(
      "Exit status 0: sound. 7: damaged, or not as it was written. 1: not ours, or of another version; the message says "
      "what it is and which program reads it. 6: several files have different answers.");
  verb.paragraph(
      "A recording with chunks that the card itself flagged (truncated, malformed, CRC, given up) is not sound. A dump of "
      "superpages (`rodeo card bench dma --to-file`) is checked as in the bench.");
  verb.paragraph(
      "An event file of Rodeo has a CRC-32 of the whole file, which finds any flipped bit. Recordings and dumps have no "
      "checksum: only headers and provable payload are proven, and the output lists the parts without protection, as for "
      "files of other programs.");
  verb.run([options] { return verify(*options); });
}

}  // namespace rodeo::cli
