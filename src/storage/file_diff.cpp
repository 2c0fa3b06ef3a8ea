#include "storage/file_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "formats/file_marks.h"
#include "formats/full_event.h"
#include "formats/rob.h"
#include "storage/event_file_reader.h"
#include "storage/event_file_walk.h"
#include "storage/merge_plan.h"

namespace rodeo::storage {

using namespace formats;

namespace {

struct Side {
  std::string path;
  base::MappedFile mapped;
  EventFileReader reader;
  std::string ended_early = {};
};

Result<Side> open(const std::string& path) {
  auto mapped = RODEO_TRY(base::MappedFile::open(path));
  if (const FileKind kind = file_kind(mapped.bytes()); kind != FileKind::event_file)
    return std::unexpected(no_event_file(kind, mapped.bytes(), path));
  auto reader = EventFileReader::open(mapped.bytes());
  if (!reader) {
    return std::unexpected(
        Error{"data.header", reader.error().message(), path, "`rodeo data recover` saves the events that are whole"});
  }
  return Side{path, std::move(mapped), std::move(*reader), {}};
}

// The source id of the first ROB: it distinguishes events with the same L1 id.
std::uint32_t first_rob(std::span<const std::byte> bytes) {
  const auto event = decode_full_event(bytes);
  if (!event) return 0;
  std::vector<std::byte> buffer;
  const auto robs = event->robs(buffer);
  if (!robs) return 0;
  const auto rob = decode_rob(robs->bytes());
  return rob ? rob->source_id.value : 0;
}

std::string mask_text(const std::array<std::uint32_t, 4>& mask) {
  std::string text = "0x";
  for (std::size_t i = mask.size(); i-- > 0;) text += fmt::format("{:08x}", mask[i]);
  return text;
}

bool tells_every_file_apart(const std::string& text) { return text.starts_with("GUID=") || text.starts_with(kCrcKey); }

class Diffing {
 public:
  Diffing(Side& left, Side& right, const FileDiffSettings& settings, const std::function<void(const FileDifference&)>& found)
      : sides_{&left, &right}, settings_(settings), found_(found), plan_(2, settings.window) {}

  Result<DiffReport> run(const Progress& progress) {
    records();
    while (true) {
      while (const auto side = plan_.wants()) RODEO_TRY(read_event(*side, progress));
      const auto together = plan_.next();
      if (together.empty()) break;
      compare(together);
    }
    for (const Side* side : sides_) RODEO_TRY(side->mapped.check());
    ends();
    return report_;
  }

 private:
  void add(const FileDifference& difference) {
    ++report_.differences;
    found_(difference);
  }

  void of_file(const std::string& field, const std::string& left, const std::string& right) {
    if (left != right) add({std::nullopt, {.where = "file", .field = field, .left = left, .right = right}});
  }

  void records() {
    const DecodedFileHeader& a = sides_[0]->reader.header();
    const DecodedFileHeader& b = sides_[1]->reader.header();
    const auto number = [&](const char* field, std::uint64_t left, std::uint64_t right) {
      of_file(field, std::to_string(left), std::to_string(right));
    };
    number("version", a.version, b.version);
    of_file("application", a.application, b.application);
    number("run number", a.run.run_number, b.run.run_number);
    number("run trigger type", a.run.trigger_type, b.run.trigger_type);
    number("beam type", a.run.beam_type, b.run.beam_type);
    number("beam energy", a.run.beam_energy, b.run.beam_energy);
    of_file("detector mask", mask_text(a.run.detector_mask), mask_text(b.run.detector_mask));
    const auto only_in = [](const DecodedFileHeader& of, const DecodedFileHeader& other) {
      std::vector<std::string> texts;
      for (const std::string& text : of.free_strings) {
        if (!tells_every_file_apart(text) && std::ranges::find(other.free_strings, text) == other.free_strings.end())
          texts.push_back(text);
      }
      return texts;
    };
    for (const std::string& text : only_in(a, b)) of_file("free string", text, "");
    for (const std::string& text : only_in(b, a)) of_file("free string", "", text);
  }

  Result<void> read_event(std::size_t index, const Progress& progress) {
    Side& side = *sides_[index];
    const std::uint64_t before = side.reader.position();
    const auto next = side.reader.next();
    add_progress(progress, side.reader.position() - before);
    if (!next || !*next) {
      if (!next) side.ended_early = next.error().message();
      plan_.end(index);
      return {};
    }
    ++(index == 0 ? report_.left_events : report_.right_events);
    const EventBlock& block = **next;
    const auto event = decode_full_event(side.reader.event(block, buffers_[index]));
    if (!event) {
      FileDifference difference{std::nullopt, {.where = "event", .field = "structure", .left = {}, .right = {}}};
      (index == 0 ? difference.left_number : difference.right_number) = block.number;
      (index == 0 ? difference.left_offset : difference.right_offset) = block.offset + kSeparatorBytes;
      (index == 0 ? difference.what.left : difference.what.right) = event.error().message();
      ++(index == 0 ? report_.only_left : report_.only_right);
      add(difference);
      return {};
    }
    if (plan_.add(index, event->l1id, block)) return {};
    return std::unexpected(
        Error{"data.order",
              fmt::format("event {} (L1 id {:#010x}) comes after later ones that are more than {} events away", block.number,
                          event->l1id.value, settings_.window),
              side.path, "look further: --window N"});
  }

  std::span<const std::byte> bytes(std::size_t side, const EventBlock& block) {
    return sides_[side]->reader.event(block, buffers_[side]);
  }

  void compare(std::span<MergePlan<EventBlock>::Member> together) {
    std::array<std::vector<EventBlock>, 2> of;
    for (const auto& member : together) of[member.writer].push_back(member.event);
    for (const std::size_t side : {0U, 1U}) {
      if (of[side].size() > 1)
        std::ranges::stable_sort(of[side], {}, [&](const EventBlock& block) { return first_rob(bytes(side, block)); });
    }
    std::size_t left = 0;
    std::size_t right = 0;
    while (left < of[0].size() || right < of[1].size()) {
      const bool both = left < of[0].size() && right < of[1].size();
      const bool one_each = of[0].size() == 1 && of[1].size() == 1;
      const std::uint32_t a = both && !one_each ? first_rob(bytes(0, of[0][left])) : 0;
      const std::uint32_t b = both && !one_each ? first_rob(bytes(1, of[1][right])) : 0;
      if (both && a == b) {
        pair(of[0][left++], of[1][right++]);
      } else if (right == of[1].size() || (both && a < b)) {
        alone(0, of[0][left++]);
      } else {
        alone(1, of[1][right++]);
      }
    }
  }

  void alone(std::size_t side, const EventBlock& block) {
    const auto event = decode_full_event(bytes(side, block));
    FileDifference difference{event->l1id, {.where = "event", .field = "event", .left = {}, .right = {}}};
    const std::string text = fmt::format("{} bytes", event->words.size() * kWordBytes);
    (side == 0 ? difference.what.left : difference.what.right) = text;
    (side == 0 ? difference.left_number : difference.right_number) = block.number;
    (side == 0 ? difference.left_offset : difference.right_offset) = block.offset + kSeparatorBytes;
    ++(side == 0 ? report_.only_left : report_.only_right);
    add(difference);
  }

  void pair(const EventBlock& left, const EventBlock& right) {
    const std::span<const std::byte> a = bytes(0, left);
    const std::span<const std::byte> b = bytes(1, right);
    const L1Id id = decode_full_event(a)->l1id;
    const std::uint64_t differences = diff_events(a, b, settings_.events, [&](const EventDifference& what) {
      add({id, what, left.number, right.number, left.offset + kSeparatorBytes, right.offset + kSeparatorBytes});
    });
    ++(differences == 0 ? report_.same_events : report_.different_events);
  }

  void ends() {
    of_file("can be read to", sides_[0]->ended_early.empty() ? "its end" : sides_[0]->ended_early,
            sides_[1]->ended_early.empty() ? "its end" : sides_[1]->ended_early);
  }

  std::array<Side*, 2> sides_;
  const FileDiffSettings& settings_;
  const std::function<void(const FileDifference&)>& found_;
  MergePlan<EventBlock> plan_;
  std::array<std::vector<std::byte>, 2> buffers_;
  DiffReport report_;
};

}  // namespace

Result<DiffReport> diff_files(const std::string& left, const std::string& right, const FileDiffSettings& settings,
                              const Progress& progress, const std::function<void(const FileDifference&)>& found) {
  Side a = RODEO_TRY(open(left));
  Side b = RODEO_TRY(open(right));
  return Diffing(a, b, settings, found).run(progress);
}

}  // namespace rodeo::storage
