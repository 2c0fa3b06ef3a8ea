// `rodeo data dump`: an event as a tree, every header word in hex with its name.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "cli/data.h"
#include "cli/data_file.h"
#include "formats/event_dump.h"
#include "formats/event_file_reader.h"
#include "formats/full_event.h"

namespace rodeo::cli {
namespace {

using namespace formats;

struct Options {
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

Result<ExitCode> dump(const Options& options) {
  const auto file = open_data_file(options.file);
  if (!file) return std::unexpected(file.error());
  if (file->kind != FileKind::event_file) {
    return std::unexpected(Error{"data.recording", "is a recording of FELIX blocks, which holds no events", options.file,
                                 "`rodeo data list` shows its E-links"});
  }
  std::optional<L1Id> l1id;
  if (options.l1id) {
    l1id = parse_l1id(*options.l1id);
    if (!l1id)
      return std::unexpected(
          Error{"cli.usage", "--l1id wants an extended L1 id, for example 0x01000007, not " + *options.l1id});
  }
  auto reader = EventFileReader::open(file->bytes());
  if (!reader) {
    return std::unexpected(
        Error{"data.header", reader.error().message(), options.file, "save its events: rodeo data recover " + options.file});
  }
  const bool first_only = options.events.empty() && !l1id;
  const DumpLimits limits = options.all ? DumpLimits{.chunks = 0, .hex_lines = 0} : DumpLimits{};
  Json list = Json::array();
  std::vector<std::byte> buffer;
  std::size_t shown = 0;
  std::optional<Error> damaged;
  while (!(first_only && shown == 1)) {
    const auto block = reader->next();
    if (!block)
      damaged = Error{"data.damaged", block.error().message(), options.file,
                      "save its events: rodeo data recover " + options.file};
    if (!block || !*block) break;
    const EventBlock& found = **block;
    const bool by_number = std::ranges::find(options.events, found.number) != options.events.end();
    const std::span<const std::byte> event = reader->event(found, buffer);
    if (!first_only && !by_number) {
      if (!l1id) continue;
      const auto header = decode_full_event(event);
      if (!header || header->l1id != *l1id) continue;
    }
    ++shown;
    const EventDump tree = dump_event(event, fmt::format("event {}: {} bytes at byte {} of the file", found.number,
                                                         event.size(), found.offset + kSeparatorBytes));
    if (options.output == "json") {
      list.push_back(dump_json(tree.root));
    } else {
      print(render_dump(tree.root, limits));
    }
  }
  if (const auto whole = file->mapped.check(); !whole) return std::unexpected(whole.error());
  if (options.output == "json") print(list.dump() + "\n");
  if (shown > 0 && first_only) print_note("this is the first event; --event N or --l1id ID choose another");
  if (shown > 0) return ExitCode::done;
  if (damaged) return std::unexpected(*damaged);
  return std::unexpected(Error{"data.no_event",
                               first_only ? "there is no event in the file" : "there is no such event in the file",
                               options.file, "`rodeo data list` shows numbers and L1 ids"});
}

}  // namespace

Json dump_json(const DumpNode& root) { return json_of(root, true); }

void add_data_dump(Command& data) {
  auto options = std::make_shared<Options>();
  Command& verb = data.verb("dump", "An event as a tree: every header word in hex, with its name and meaning");
  verb.example("rodeo data dump FILE", "the first event");
  verb.example("rodeo data dump FILE --event 12 --all", "event 12 with every chunk and every byte");
  verb.example("rodeo data dump FILE --l1id 0x01000007 -o json", "for programs");
  verb.option("FILE", options->file, "An event file").required();
  verb.option("--event", options->events, "Number of an event, as `rodeo data list` shows it").value_name("N");
  verb.option("--l1id", options->l1id, "Events of this extended L1 id").value_name("ID");
  verb.flag("--all", options->all, "Every chunk and every byte; JSON always has all");
  verb.choice("-o,--output", options->output, {"tree", "json"}, "Format on stdout");
  verb.run([options] { return dump(*options); });
}

}  // namespace rodeo::cli
