// `rodeo data dump`: an event, or a page of a card, as a tree: every header word in hex with its name.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "cli/data.h"
#include "cli/data_file.h"
#include "cli/data_progress.h"
#include "formats/event_dump.h"
#include "formats/full_event.h"
#include "formats/rdh.h"
#include "formats/superpage_dump.h"
#include "storage/event_file_reader.h"

namespace rodeo::cli {
namespace {

using namespace formats;
using namespace storage;

struct DataDumpOptions {
  std::string file;
  std::vector<std::uint64_t> events;
  std::optional<std::string> l1id;
  bool all = false;
  std::string output = "tree";
};

Json json_of(const DumpNode& node, bool root) {
  Json json = Json::object({{"kind", node.kind}, {"title", node.title}});
  if (!node.fields.empty()) {
    Json fields = Json::array();
    for (const DumpField& field : node.fields) {
      fields.push_back(Json::object({{"name", field.name},
                                     {"offset_bytes", field.offset},
                                     {"word", fmt::format("{:#010x}", field.word)},
                                     {"value", field.word},
                                     {"meaning", field.meaning}}));
    }
    json["fields"] = std::move(fields);
  }
  if (!node.bytes.empty()) {
    json["bytes_offset"] = node.bytes_offset;
    json["bytes"] = hex_text(node.bytes);
  }
  if (node.uncompressed) json["uncompressed"] = true;
  if (!node.notes.empty()) json["notes"] = Json::array_of(node.notes);
  if (!node.children.empty() || root) {
    Json children = Json::array();
    for (const DumpNode& child : node.children) children.push_back(json_of(child, false));
    json["children"] = std::move(children);
  }
  return json;
}

std::optional<L1Id> parse_l1id(const std::string& text) {
  char* end = nullptr;
  const unsigned long value = std::strtoul(text.c_str(), &end, 0);
  if (text.empty() || *end != '\0' || value > 0xffffffff) return std::nullopt;
  return L1Id{static_cast<std::uint32_t>(value)};
}

// Prints trees one after the other, or collects them in one JSON document.
class Shown {
 public:
  explicit Shown(const DataDumpOptions& options)
      : line_("searching " + options.file, 0),
        json_(options.output == "json"),
        limits_(options.all ? DumpLimits{.chunks = 0, .hex_lines = 0} : DumpLimits{}) {}

  /// `searched`: bytes of the file up to the next event or page.
  void go_on(std::uint64_t searched) { line_.advance(searched); }
  void add(const DumpNode& root) {
    ++count_;
    line_.clear();
    if (json_) {
      list_.push_back(dump_json(root));
    } else {
      print(render_dump(root, limits_));
    }
  }
  void finish() {
    line_.clear();
    if (json_) print(list_.dump() + "\n");
  }
  std::size_t count() const { return count_; }

 private:
  ProgressLine line_;
  bool json_;
  DumpLimits limits_;
  Json list_ = Json::array();
  std::size_t count_ = 0;
};

Result<ExitCode> dump_pages(const DataFile& file, const DataDumpOptions& options, std::optional<L1Id> orbit) {
  const bool first_only = options.events.empty() && !orbit;
  Shown shown(options);
  std::uint64_t number = 0;
  std::size_t before = 0;
  for_each_page(file.bytes(), [&](std::size_t at) {
    ++number;
    shown.go_on(at - std::exchange(before, at));
    const bool wanted = first_only || std::ranges::find(options.events, number) != options.events.end() ||
                        (orbit && Rdh::read(file.bytes().data() + at).orbit() == orbit->value);
    if (wanted) shown.add(dump_page(file.bytes(), at, fmt::format("page {} at byte {} of the file", number, at)));
    return !first_only;
  });
  RODEO_TRY(file.mapped.check());
  shown.finish();
  if (shown.count() > 0 && first_only) print_note("this is the first page; --event N or --l1id ORBIT chooses another");
  if (shown.count() > 0) return ExitCode::done;
  return std::unexpected(Error{"data.no_page", "there is no such page in the file", options.file,
                               "`rodeo data list` shows links and orbits; a CRU's internal generator sends no headers"});
}

Result<ExitCode> dump(const DataDumpOptions& options) {
  const auto file = RODEO_TRY(open_data_file(options.file));
  if (file.kind == FileKind::block_recording) {
    return std::unexpected(Error{"data.recording", "is a recording of FELIX blocks, which has no events", options.file,
                                 "`rodeo data list` shows its E-links"});
  }
  std::optional<L1Id> l1id;
  if (options.l1id) {
    l1id = parse_l1id(*options.l1id);
    if (!l1id)
      return std::unexpected(
          Error{"cli.usage", "--l1id needs an extended L1 id, for example 0x01000007, not " + *options.l1id});
  }
  if (file.kind == FileKind::superpage_dump) return dump_pages(file, options, l1id);
  auto reader = EventFileReader::open(file.bytes());
  if (!reader) return std::unexpected(damaged_error("data.header", reader.error().message(), file));
  const bool first_only = options.events.empty() && !l1id;
  Shown shown(options);
  std::vector<std::byte> buffer;
  std::optional<Error> damaged;
  while (!(first_only && shown.count() == 1)) {
    const std::uint64_t before = reader->position();
    const auto block = reader->next();
    shown.go_on(reader->position() - before);
    if (!block) damaged = damaged_error("data.damaged", block.error().message(), file);
    if (!block || !*block) break;
    const EventBlock& found = **block;
    const bool by_number = std::ranges::find(options.events, found.number) != options.events.end();
    const std::span<const std::byte> event = reader->event(found, buffer);
    if (!first_only && !by_number) {
      if (!l1id) continue;
      const auto header = decode_full_event(event);
      if (!header || header->l1id != *l1id) continue;
    }
    shown.add(dump_event(event,
                         fmt::format("event {}: {} bytes at byte {} of the file", found.number, event.size(),
                                     found.offset + kSeparatorBytes),
                         layout_of(reader->header()).value_or(kOneNumber))
                  .root);
  }
  RODEO_TRY(file.mapped.check());
  shown.finish();
  if (shown.count() > 0 && first_only) print_note("this is the first event; --event N or --l1id ID chooses another");
  if (shown.count() > 0) return ExitCode::done;
  if (damaged) return std::unexpected(*damaged);
  return std::unexpected(Error{"data.no_event",
                               first_only ? "there is no event in the file" : "there is no such event in the file",
                               options.file, "`rodeo data list` shows numbers and L1 ids"});
}

}  // namespace

Json dump_json(const DumpNode& root) { return json_of(root, true); }

void add_data_dump(Command& data) {
  auto options = std::make_shared<DataDumpOptions>();
  Command& verb =
      data.verb("dump", "Shows an event, or a page of a card, as a tree: every header word in hex, with its meaning");
  verb.example("rodeo data dump FILE", "the first event");
  verb.example("rodeo data dump FILE --event 12 --all", "event 12 with every chunk and every byte");
  verb.example("rodeo data dump FILE --l1id 0x01000007 -o json", "for programs");
  verb.option("FILE", options->file, "An event file, or a dump of superpages").required();
  verb.option("--event", options->events, "Number of an event, as `rodeo data list` shows it; of a page, from 1")
      .value_name("N");
  verb.option("--l1id", options->l1id, "Events of this extended L1 id; pages of this orbit").value_name("ID");
  verb.flag("--all", options->all, "All chunks and bytes; JSON always has all");
  verb.choice("-o,--output", options->output, {"tree", "json"}, "Format on stdout");
  verb.run([options] { return dump(*options); });
}

}  // namespace rodeo::cli
