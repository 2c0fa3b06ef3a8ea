// An event as a tree of named words: what `rodeo data dump` shows, for people as text and for programs as JSON.
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
  std::string title = {};  ///< one line that says the most important
  std::vector<DumpField> fields = {};
  std::uint64_t bytes_offset = 0;
  std::span<const std::byte> bytes = {};  ///< content shown as hex; refers to the event or to EventDump::buffer
  std::vector<std::string> notes = {};    ///< what is wrong, and stream tags in clear
  bool uncompressed = false;              ///< offsets count in the decompressed payload
  std::vector<DumpNode> children = {};
};

/// A tree and the memory that it refers to, besides the event.
struct EventDump {
  DumpNode root;
  std::vector<std::byte> buffer;  ///< the decompressed payload
};

/// The tree refers to the event, which must outlive it. `ids`: what its L1 ids have. Takes an event apart as far as it can be; what does not decode is a node with a note and its bytes.
EventDump dump_event(std::span<const std::byte> event, std::string title, const IdLayout& ids = {});

/// How much render_dump() shows; 0 is all.
struct DumpLimits {
  std::size_t chunks = 8;     ///< per ROD
  std::size_t hex_lines = 3;  ///< per piece of content
};

/// The tree as text; ends with a newline.
std::string render_dump(const DumpNode& root, const DumpLimits& limits);

/// "0011 2233 ..." without offsets or line breaks.
std::string hex_text(std::span<const std::byte> bytes);

}  // namespace rodeo::formats
