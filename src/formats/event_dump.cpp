#include "formats/event_dump.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <ctime>

#include "base/sentence.h"
#include "formats/checksum.h"
#include "formats/event_names.h"
#include "formats/full_event.h"
#include "formats/rob.h"
#include "formats/rod.h"
#include "formats/rod_data.h"
#include "formats/stream_tags.h"

namespace rodeo::formats {
namespace {

std::string number(std::uint64_t value) { return fmt::format("{}", value); }
std::string words(std::uint64_t value) { return fmt::format("{} words", value); }
std::string source_text(SourceId id) {
  const std::string_view name = subdetector_name(id.subdetector());
  return fmt::format("{}, module {:#06x}", name.empty() ? fmt::format("subdetector {:#04x}", id.subdetector()) : name,
                     id.module());
}
std::string l1id_text(L1Id id, const IdLayout& ids) {
  if (!ids.has_resets) return fmt::format("L1 id {}", ids.shown(id));
  return fmt::format("ECR {}, L1 id {}", id.ecr(), id.l1());
}
std::string version_text(std::uint32_t version) { return fmt::format("{}.{}", version >> 24, version >> 16 & 0xff); }
std::string verdict(bool holds) { return holds ? "holds" : "does NOT hold"; }

// Names the words one after the other.
class Namer {
 public:
  Namer(DumpNode& node, WordView words, std::size_t base_bytes) : node_(node), words_(words), base_(base_bytes) {}

  void name(const char* name, std::string meaning = {}) {
    node_.fields.push_back({base_ + at_ * kWordBytes, words_[at_], name, std::move(meaning)});
    ++at_;
  }
  void name_all(std::size_t count, const char* text, const char* short_text) {
    for (std::size_t i = 0; i < count; ++i) name(text, fmt::format("{} {}", short_text, i));
  }
  std::size_t at() const { return at_; }
  void skip(std::size_t count) { at_ += count; }

 private:
  DumpNode& node_;
  WordView words_;
  std::size_t base_;
  std::size_t at_ = 0;
};

void name_status(Namer& namer, WordView status, FragmentKind kind) {
  const auto found = absent_links(kind == FragmentKind::rod ? status : WordView{});
  const AbsentLinks links = found.value_or(AbsentLinks{});
  const auto name_bitmap = [&](const char* what, WordView bits) {
    for (std::size_t i = 0; i < bits.size(); ++i) {
      std::string which;
      for (std::uint32_t rest = bits[i]; rest != 0; rest &= rest - 1)
        which += fmt::format("{}{}", which.empty() ? "" : ", ", 32 * i + static_cast<std::size_t>(std::countr_zero(rest)));
      namer.name("status, bitmap", fmt::format("{}, links {} to {} of the ROB: {}", what, 32 * i, 32 * i + 31,
                                               which.empty() ? "none" : which));
    }
  };
  for (std::size_t i = 0; i < status.size(); ++i) {
    if (i == 0) {
      namer.name("status", joined_or_ok(status_names(status[0], kind)));
    } else if (kind == FragmentKind::rod && found && i == 1) {
      const std::uint32_t removed = links.removed();
      namer.name("status, word 1", fmt::format("{} missing{}", base::counted(status[1], "link"),
                                               removed > 0 ? fmt::format(", {} removed", removed) : ""));
      for (std::size_t k = 0; k < links.listed.size(); ++k)
        namer.name("status, further", fmt::format("missing: link id {:#010x}", links.listed[k]));
      name_bitmap("missing", links.missing_bits);
      name_bitmap("removed", links.removed_bits);
      return;
    } else {
      namer.name("status, further");
    }
  }
}

DumpNode undecoded(std::string kind, const DecodeError& error, std::span<const std::byte> bytes, std::size_t offset) {
  DumpNode node{.kind = std::move(kind), .title = "does not decode"};
  node.notes.push_back(error.from(offset).message());
  node.bytes = bytes;
  node.bytes_offset = offset;
  return node;
}

void add_chunks(DumpNode& rod_node, const RodView& rod, std::size_t offset) {
  std::size_t count = 0;
  std::size_t decoded = 0;
  const auto data = rod.data.bytes();
  std::vector<DumpNode> chunks;
  const Decoded<void> all = for_each_chunk_record(data, [&](const ChunkRecord& record) {
    const ChunkHeader& header = record.header;
    std::vector<std::string> flags = rodeo_status_names(header.rodeo_status);
    for (std::string& name : felix_status_names(header.felix_status)) flags.push_back("FELIX: " + name);
    DumpNode chunk{.kind = "chunk",
                   .title = fmt::format("chunk {}: link id {:#010x}, {} bytes, {}", count++, header.link_id,
                                        record.bytes.size(), joined_or_ok(flags))};
    const std::size_t at = offset + record.offset;
    Namer namer(chunk, WordView(data.subspan(record.offset)), at);
    namer.name("size and status", fmt::format("size {}, FELIX status {:#04x}, Rodeo status {:#04x}",
                                              header.size == kLongChunk ? "long" : number(header.size), header.felix_status,
                                              header.rodeo_status));
    namer.name("link id");
    if (header.size == kLongChunk) namer.name("bytes of a long chunk", number(record.bytes.size()));
    chunk.bytes_offset = at + namer.at() * kWordBytes;
    chunk.bytes = record.bytes;
    decoded = record.offset + namer.at() * kWordBytes + padded_to_word(record.bytes.size());
    chunks.push_back(std::move(chunk));
  });
  // Data of other software are not chunk records; they are shown as words unless most of them decode.
  if (!all && decoded * 2 < data.size()) {
    rod_node.children.push_back({.kind = "words",
                                 .title = fmt::format("data: {} words, no chunk records", rod.data.size()),
                                 .bytes_offset = offset,
                                 .bytes = data});
    return;
  }
  for (DumpNode& chunk : chunks) rod_node.children.push_back(std::move(chunk));
  if (all) return;
  rod_node.children.push_back(undecoded("words", all.error(), data.subspan(decoded), offset));
  rod_node.children.back().bytes_offset = offset + decoded;
}

DumpNode rod_node(const RodView& rod, std::size_t offset, const IdLayout& ids) {
  DumpNode node{.kind = "rod"};
  node.title = fmt::format("ROD {:#010x} {}: {}, {} data words, {}", rod.header.source_id.value,
                           source_text(rod.header.source_id), l1id_text(rod.header.l1id, ids), rod.data.size(),
                           joined_or_ok(status_names(rod.status.empty() ? 0 : rod.status[0], FragmentKind::rod)));
  Namer namer(node, rod.words, offset);
  namer.name("marker", "ROD");
  namer.name("header size", "9 words");
  namer.name("version", fmt::format("{}, detector's minor {:#06x}", version_text(rod.words[2]), rod.header.minor_version));
  namer.name("source id", source_text(rod.header.source_id));
  namer.name("run number", number(rod.header.run_number));
  namer.name("extended L1 id", l1id_text(rod.header.l1id, ids));
  namer.name("BCID", number(rod.header.bcid));
  namer.name("L1 trigger type", number(rod.header.trigger_type));
  namer.name("detector event type", number(rod.header.detector_event_type));
  const bool status_first = rod.status_position == StatusPosition::before_data;
  if (!status_first) namer.skip(rod.data.size());
  name_status(namer, rod.status, FragmentKind::rod);
  if (status_first) namer.skip(rod.data.size());
  namer.name("number of status words");
  namer.name("number of data words", number(rod.data.size()));
  namer.name("status position", status_first ? "before the data" : "after the data");
  add_chunks(node, rod, offset + static_cast<std::size_t>(rod.data.bytes().data() - rod.words.bytes().data()));
  return node;
}

DumpNode rob_node(const RobView& rob, std::size_t offset, const IdLayout& ids) {
  DumpNode node{.kind = "rob"};
  const std::uint32_t status = rob.status.empty() ? 0 : rob.status[0];
  node.title = fmt::format("ROB {:#010x} {}: {} words, {}", rob.source_id.value, source_text(rob.source_id),
                           rob.words.size(), joined_or_ok(status_names(status, FragmentKind::rob)));
  Namer namer(node, rob.words, offset);
  namer.name("marker", "ROB");
  namer.name("total size", words(rob.words.size()));
  namer.name("header size", words(rob.words[2]));
  namer.name("version", version_text(rob.version));
  namer.name("source id", source_text(rob.source_id));
  namer.name("number of status words");
  name_status(namer, rob.status, FragmentKind::rob);
  namer.name("checksum type", std::string(checksum_name(rob.checksum_type)));
  if (rob.checksum_type != ChecksumType::none) {
    namer.skip(rob.payload.size());
    namer.name("checksum", verdict(rob.checksum_holds()));
  }
  const std::size_t rod_offset = offset + rob.payload_offset_bytes();
  const Decoded<RodView> rod = decode_rod(rob.payload.bytes());
  node.children.push_back(rod ? rod_node(*rod, rod_offset, ids)
                              : undecoded("rod", rod.error(), rob.payload.bytes(), rod_offset));
  return node;
}

void name_event_header(DumpNode& node, const FullEventView& event, const IdLayout& ids) {
  const bool version5 = event.version >> 16 == kEventVersion5;
  Namer namer(node, event.words, 0);
  namer.name("marker", "full event");
  namer.name("total size", words(event.words.size()));
  namer.name("header size", words(event.header_words));
  namer.name("version", version_text(event.version));
  namer.name("source id", source_text(event.source_id));
  namer.name("number of status words");
  name_status(namer, event.status, FragmentKind::event);
  namer.name("checksum type", std::string(checksum_name(event.checksum_type)));
  namer.name("bunch-crossing time [s]", fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(std::time_t{event.bc_time_s})));
  namer.name("bunch-crossing time [ns]", number(event.bc_time_ns));
  namer.name(version5 ? "global id, low" : "global id", number(event.global_id));
  if (version5) namer.name("global id, high");
  namer.name("run type", run_type_name(event.run_type));
  namer.name("run number", number(event.run_number));
  namer.name("lumi block", number(event.lumi_block));
  namer.name("extended L1 id", l1id_text(event.l1id, ids));
  namer.name("BCID", number(event.bcid));
  namer.name("L1 trigger type", number(event.trigger_type));
  if (version5) {
    namer.name("compression type", std::string(compression_name(event.compression)));
    namer.name("uncompressed payload", event.compression == Compression::none ? "" : words(event.uncompressed_words));
  }
  namer.name("number of L1 info words");
  namer.name_all(event.l1_info.size(), "L1 info", "word");
  namer.name("number of L2 info words");
  namer.name_all(event.l2_info.size(), "L2 info", "word");
  namer.name("number of HLT info words");
  namer.name_all(event.hlt_info.size(), "HLT info", "word");
  namer.name("number of stream tag words", event.stream_tags.empty() ? "" : stream_tag_text(event.stream_tags));
  if (event.checksum_type != ChecksumType::none) {
    namer.skip(event.stream_tags.size() + event.payload.size());
    namer.name("checksum", verdict(event.checksum_holds()));
  }
}

constexpr std::size_t kBytesPerLine = 16;

std::string hex_line(std::span<const std::byte> line, std::uint64_t offset) {
  std::string hex;
  std::string text;
  for (std::size_t i = 0; i < kBytesPerLine; ++i) {
    if (i % 4 == 0 && i != 0) hex += ' ';
    if (i < line.size()) {
      const auto byte = static_cast<unsigned char>(line[i]);
      hex += fmt::format("{:02x}", byte);
      text += byte >= 0x20 && byte < 0x7f ? static_cast<char>(byte) : '.';
    } else {
      hex += "  ";
    }
  }
  return fmt::format("{:08x}  {}  |{}|\n", offset, hex, text);
}

class Renderer {
 public:
  explicit Renderer(const DumpLimits& limits) : limits_(limits) {}

  std::string render(const DumpNode& root) {
    text_ = root.title + '\n';
    body(root, "");
    return std::move(text_);
  }

 private:
  void body(const DumpNode& node, const std::string& indent) {
    const std::string inner = indent + (node.children.empty() ? "  " : "│ ");
    for (const std::string& note : node.notes) text_ += fmt::format("{}! {}\n", inner, note);
    std::size_t widest = 0;
    for (const DumpField& field : node.fields) widest = std::max(widest, field.name.size());
    // The title contains a chunk's two words.
    if (node.kind != "chunk" || limits_.hex_lines == 0) {
      for (const DumpField& field : node.fields) {
        std::string line =
            fmt::format("{}{:08x}  {:08x}  {:<{}}  {}", inner, field.offset, field.word, field.name, widest, field.meaning);
        line.resize(line.find_last_not_of(' ') + 1);
        text_ += line + '\n';
      }
    }
    hex(node, inner);
    std::size_t chunks = 0;
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      const DumpNode& child = node.children[i];
      if (child.kind == "chunk" && limits_.chunks != 0 && chunks++ == limits_.chunks) {
        text_ += fmt::format("{}└ … {} more chunks (--all shows them)\n", indent, node.children.size() - i);
        return;
      }
      const bool last = i + 1 == node.children.size();
      text_ += fmt::format("{}{} {}\n", indent, last ? "└" : "├", child.title);
      body(child, indent + (last ? "  " : "│ "));
    }
  }

  void hex(const DumpNode& node, const std::string& indent) {
    for (std::size_t at = 0, lines = 0; at < node.bytes.size(); at += kBytesPerLine, ++lines) {
      if (limits_.hex_lines != 0 && lines == limits_.hex_lines) {
        text_ += fmt::format("{}… {} more bytes (--all shows them)\n", indent, node.bytes.size() - at);
        return;
      }
      const auto line = node.bytes.subspan(at, std::min(kBytesPerLine, node.bytes.size() - at));
      text_ += indent + hex_line(line, node.bytes_offset + at);
    }
  }

  const DumpLimits& limits_;
  std::string text_;
};

}  // namespace

EventDump dump_event(std::span<const std::byte> event_bytes, std::string title, const IdLayout& ids) {
  EventDump dump;
  DumpNode& root = dump.root;
  root.kind = "event";
  root.title = std::move(title);
  const Decoded<FullEventView> event = decode_full_event(event_bytes);
  if (!event) {
    root.notes.push_back(event.error().message());
    root.bytes = event_bytes;
    return dump;
  }
  name_event_header(root, *event, ids);
  const Decoded<WordView> robs = event->robs(dump.buffer);
  if (!robs) {
    root.children.push_back(undecoded("words", robs.error(), event->payload.bytes(), event->header_words * kWordBytes));
    return dump;
  }
  const bool compressed = event->compression != Compression::none;
  const std::size_t base = compressed ? 0 : event->header_words * kWordBytes;
  if (compressed) root.notes.push_back("the payload is compressed: offsets below count in the uncompressed payload");
  const Decoded<void> all = for_each_rob(*robs, [&](const RobView& rob, std::size_t offset) {
    root.children.push_back(rob_node(rob, base + offset, ids));
    root.children.back().uncompressed = compressed;
  });
  if (!all) root.children.push_back(undecoded("words", all.error(), {}, base));
  return dump;
}

std::string render_dump(const DumpNode& root, const DumpLimits& limits) { return Renderer(limits).render(root); }

std::string hex_text(std::span<const std::byte> bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::byte b : bytes) {
    text += kDigits[static_cast<unsigned>(b) >> 4];
    text += kDigits[static_cast<unsigned>(b) & 0xf];
  }
  return text;
}

}  // namespace rodeo::formats
