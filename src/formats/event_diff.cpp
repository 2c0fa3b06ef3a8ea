#include "formats/event_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "formats/fid.h"
#include "formats/full_event.h"
#include "formats/rob.h"
#include "formats/rod_data.h"

namespace rodeo::formats {
namespace {

std::string words_text(WordView words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) text += fmt::format("{}{:#x}", i == 0 ? "" : " ", words[i]);
  return text.empty() ? "none" : text;
}

std::string bytes_text(std::span<const std::byte> bytes, std::size_t from) {
  std::string text;
  for (std::size_t i = from; i < std::min(bytes.size(), from + 8); ++i)
    text += fmt::format("{}{:02x}", i == from ? "" : " ", static_cast<unsigned>(bytes[i]));
  return text;
}

struct Rob {
  RobView view;
  std::uint64_t offset = 0;  // place in the uncompressed event
  bool paired = false;
};

struct Side {
  FullEventView event;
  std::vector<std::byte> buffer;
  std::vector<Rob> robs;
};

Decoded<void> read(std::span<const std::byte> bytes, Side& side) {
  side.event = RODEO_TRY(decode_full_event(bytes));
  const WordView robs = RODEO_TRY(side.event.robs(side.buffer));
  const std::uint64_t header = side.event.header_words * kWordBytes;
  return for_each_rob(robs, [&](const RobView& rob, std::size_t at) { side.robs.push_back({rob, header + at, false}); });
}

class Diff {
 public:
  explicit Diff(const std::function<void(const EventDifference&)>& found) : found_(found) {}

  void add(const EventDifference& difference) {
    ++count_;
    found_(difference);
  }
  void numbers(const std::string& where, const char* field, std::uint64_t left, std::uint64_t right, std::uint64_t left_at,
               std::uint64_t right_at) {
    if (left != right) add({where, field, fmt::format("{:#x}", left), fmt::format("{:#x}", right), left_at, right_at});
  }
  void words(const std::string& where, const char* field, WordView left, WordView right, std::uint64_t left_at,
             std::uint64_t right_at) {
    if (!std::ranges::equal(left.bytes(), right.bytes()))
      add({where, field, words_text(left), words_text(right), left_at, right_at});
  }
  std::uint64_t count() const { return count_; }

 private:
  const std::function<void(const EventDifference&)>& found_;
  std::uint64_t count_ = 0;
};

void headers(const FullEventView& a, const FullEventView& b, const DiffOptions& options, Diff& diff) {
  const auto number = [&](const char* field, std::uint64_t left, std::uint64_t right) {
    diff.numbers("event", field, left, right, 0, 0);
  };
  number("version", a.version, b.version);
  number("source id", a.source_id.value, b.source_id.value);
  diff.words("event", "status", a.status, b.status, 0, 0);
  if (options.times) {
    number("time [s]", a.bc_time_s, b.bc_time_s);
    number("time [ns]", a.bc_time_ns, b.bc_time_ns);
  }
  number("global id", a.global_id, b.global_id);
  number("run type", a.run_type, b.run_type);
  number("run number", a.run_number, b.run_number);
  number("lumi block", a.lumi_block, b.lumi_block);
  number("L1 id", a.l1id.value, b.l1id.value);
  number("BCID", a.bcid, b.bcid);
  number("trigger type", a.trigger_type, b.trigger_type);
  diff.words("event", "L1 info", a.l1_info, b.l1_info, 0, 0);
  diff.words("event", "L2 info", a.l2_info, b.l2_info, 0, 0);
  diff.words("event", "HLT info", a.hlt_info, b.hlt_info, 0, 0);
  diff.words("event", "stream tags", a.stream_tags, b.stream_tags, 0, 0);
}

void chunks(const std::string& rob, const RodView& a, const RodView& b, std::uint64_t a_at, std::uint64_t b_at, Diff& diff) {
  struct Found {
    std::optional<ChunkRecord> left, right;
  };
  // Keys: link id, and the number of earlier records of this link.
  std::map<std::pair<std::uint32_t, std::uint32_t>, Found> records;
  std::map<std::uint32_t, std::uint32_t> seen;
  const auto read_side = [&](const RodView& rod, std::optional<ChunkRecord> Found::* side) {
    seen.clear();
    return for_each_chunk_record(rod.data.bytes(), [&](const ChunkRecord& record) {
      records[{record.header.link_id, seen[record.header.link_id]++}].*side = record;
    });
  };
  if (!read_side(a, &Found::left) || !read_side(b, &Found::right)) {
    // Foreign data have no chunk records: the bytes are compared.
    const auto left = a.data.bytes();
    const auto right = b.data.bytes();
    const auto at = static_cast<std::size_t>(std::ranges::mismatch(left, right).in1 - left.begin());
    if (at < std::max(left.size(), right.size()))
      diff.add({rob, fmt::format("data, byte {}", at), bytes_text(left, at), bytes_text(right, at), a_at + at, b_at + at});
    return;
  }
  for (const auto& [key, found] : records) {
    const std::string where = fmt::format("{}, link id {:#010x}", rob, key.first);
    if (!found.left || !found.right) {
      const auto text = [](const std::optional<ChunkRecord>& one) {
        return one ? fmt::format("{} bytes", one->bytes.size()) : std::string();
      };
      diff.add({where, "chunk", text(found.left), text(found.right), found.left ? a_at + found.left->offset : 0,
                found.right ? b_at + found.right->offset : 0});
      continue;
    }
    const ChunkRecord& l = *found.left;
    const ChunkRecord& r = *found.right;
    const auto status = [](const ChunkRecord& one) { return one.header.felix_status | one.header.rodeo_status << 8; };
    diff.numbers(where, "chunk status", static_cast<std::uint64_t>(status(l)), static_cast<std::uint64_t>(status(r)),
                 a_at + l.offset, b_at + r.offset);
    if (l.bytes.size() != r.bytes.size())
      diff.add({where, "chunk size", std::to_string(l.bytes.size()), std::to_string(r.bytes.size()), a_at + l.offset,
                b_at + r.offset});
    const auto at = static_cast<std::size_t>(std::ranges::mismatch(l.bytes, r.bytes).in1 - l.bytes.begin());
    if (at < std::min(l.bytes.size(), r.bytes.size())) {
      const std::size_t before = chunk_header_bytes(l.bytes.size()) + at;
      diff.add({where, fmt::format("chunk bytes from {}", at), bytes_text(l.bytes, at), bytes_text(r.bytes, at),
                a_at + l.offset + before, b_at + r.offset + chunk_header_bytes(r.bytes.size()) + at});
    }
  }
}

void rods(const std::string& rob, const Rob& a, const Rob& b, Diff& diff) {
  const auto left = a.view.rod();
  const auto right = b.view.rod();
  if (!left || !right) {
    diff.words(rob, "bytes (no readable ROD)", a.view.payload, b.view.payload, a.offset, b.offset);
    return;
  }
  const std::uint64_t a_at = a.offset + a.view.payload_offset_bytes();
  const std::uint64_t b_at = b.offset + b.view.payload_offset_bytes();
  const auto number = [&](const char* field, std::uint64_t l, std::uint64_t r) {
    diff.numbers(rob, field, l, r, a_at, b_at);
  };
  number("ROD source id", left->header.source_id.value, right->header.source_id.value);
  number("ROD minor version", left->header.minor_version, right->header.minor_version);
  number("ROD run number", left->header.run_number, right->header.run_number);
  number("ROD L1 id", left->header.l1id.value, right->header.l1id.value);
  number("ROD BCID", left->header.bcid, right->header.bcid);
  number("ROD trigger type", left->header.trigger_type, right->header.trigger_type);
  number("ROD detector event type", left->header.detector_event_type, right->header.detector_event_type);
  diff.words(rob, "ROD status", left->status, right->status, a_at, b_at);
  const auto data_at = [](const RodView& rod) {
    return static_cast<std::uint64_t>(rod.data.bytes().data() - rod.words.bytes().data());
  };
  chunks(rob, *left, *right, a_at + data_at(*left), b_at + data_at(*right), diff);
}

}  // namespace

std::uint64_t diff_events(std::span<const std::byte> left, std::span<const std::byte> right, const DiffOptions& options,
                          const std::function<void(const EventDifference&)>& found) {
  if (std::ranges::equal(left, right)) return 0;
  Diff diff(found);
  Side a;
  Side b;
  const Decoded<void> left_read = read(left, a);
  const Decoded<void> right_read = read(right, b);
  if (!left_read || !right_read) {
    const auto text = [](const Decoded<void>& read) { return read ? "decodes" : read.error().message(); };
    diff.add({"event", "structure", text(left_read), text(right_read)});
    return diff.count();
  }
  headers(a.event, b.event, options, diff);
  for (Rob& rob : a.robs) {
    const std::string name = "ROB " + to_text(rob.view.source_id);
    const auto other = std::ranges::find_if(
        b.robs, [&](const Rob& one) { return !one.paired && one.view.source_id == rob.view.source_id; });
    if (other == b.robs.end()) {
      diff.add({name, "ROB", fmt::format("{} words", rob.view.words.size()), "", rob.offset, 0});
      continue;
    }
    other->paired = true;
    diff.words(name, "ROB status", rob.view.status, other->view.status, rob.offset, other->offset);
    rods(name, rob, *other, diff);
  }
  for (const Rob& rob : b.robs) {
    if (!rob.paired)
      diff.add(
          {"ROB " + to_text(rob.view.source_id), "ROB", "", fmt::format("{} words", rob.view.words.size()), 0, rob.offset});
  }
  return diff.count();
}

}  // namespace rodeo::formats
