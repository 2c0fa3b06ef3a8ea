// An event as a tree of named words: `rodeo data dump` shows it as text or JSON.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "formats/event_ids.h"

namespace rodeo::formats {

/// One header word with its name.
struct DumpField {
  std::uint64_t offset = 0;  ///< bytes from the start of the event (of its uncompressed payload in `uncompressed` nodes)
  std::uint32_t word = 0;
  std::string name;     ///< "L1 trigger type"
  std::string meaning;  ///< "130", "ECR 1, L1 id 7"; may be empty
};

struct DumpNode {
  std::string kind = {};   ///< event, rob, rod, chunk, words
  std::string title = {};  ///< one line with the most important values
  std::vector<DumpField> fields = {};
  std::uint64_t bytes_offset = 0;
  std::span<const std::byte> bytes = {};  ///< content shown as hex; refers to the event or to EventDump::buffer
  std::vector<std::string> notes = {};    ///< faults, and stream tags as text
  bool uncompressed = false;              ///< offsets count in the decompressed payload
  std::vector<DumpNode> children = {};
};

/// A tree, and the memory that it refers to in addition to the event.
struct EventDump {
  DumpNode root;
  std::vector<std::byte> buffer;  ///< the decompressed payload
};

/// The tree refers to the event, which must outlive it. `ids`: the layout of its L1 ids. A part that does not decode is a
/// node with a note and its bytes.
EventDump dump_event(std::span<const std::byte> event, std::string title, const IdLayout& ids = {});

/// Limits of the output of render_dump(); 0: no limit.
struct DumpLimits {
  std::size_t chunks = 8;     ///< chunks of each ROD
  std::size_t hex_lines = 3;  ///< lines for each piece of content
};

/// The tree as text that ends with a newline.
std::string render_dump(const DumpNode& root, const DumpLimits& limits);

/// "0011 2233 ..." without offsets or line breaks.
std::string hex_text(std::span<const std::byte> bytes);

}  // namespace rodeo::formats
