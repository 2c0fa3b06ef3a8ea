#include "input/event_playback.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/sentence.h"
#include "formats/fid.h"
#include "formats/file_marks.h"
#include "formats/full_event.h"
#include "formats/links_string.h"
#include "formats/rob.h"
#include "formats/rod_data.h"
#include "formats/zlib_stream.h"
#include "storage/file_verify.h"

namespace rodeo::input {

using namespace formats;

namespace {

// "run._0001.data" gives "run._0002.data"; empty if the name has no number in this place.
std::string next_name(const std::string& name) {
  const std::size_t mark = name.rfind("._");
  const std::size_t end = mark == std::string::npos ? mark : name.find_first_not_of("0123456789", mark + 2);
  if (mark == std::string::npos || end == mark + 2 || end == std::string::npos || end - mark > 10) return {};
  const std::size_t digits = end - mark - 2;
  const std::uint64_t number = std::stoull(name.substr(mark + 2, digits));
  return name.substr(0, mark + 2) + fmt::format("{:0{}}", number + 1, digits) + name.substr(end);
}

}  // namespace

void EventNumbers::begin(const storage::EventFileReader& file) {
  global_ = IdsMark::parse(file.header().free_string(kIdsKey)).has_value();
}

std::int64_t EventNumbers::of(const FullEventView& event) {
  constexpr std::uint64_t kHighest = std::uint64_t{1} << 62;
  constexpr std::int64_t kFar = std::int64_t{1} << 32;
  const bool sane = global_ && event.global_id < kHighest;
  const std::int64_t global = sane ? static_cast<std::int64_t>(event.global_id) : 0;
  if (sane && (!last_ || std::abs(global - *last_) < kFar)) {
    last_ = global;
    return global;
  }
  // Used if the file promises no global ids, or a bit of this one is flipped.
  const std::int64_t near = last_.value_or(event.l1id.value);
  last_ = near + static_cast<std::int32_t>(event.l1id.value - static_cast<std::uint32_t>(near));
  return *last_;
}

PlayedFiles::PlayedFiles(const std::filesystem::path& first, bool follow, std::span<const std::uint32_t> robs) {
  for (std::filesystem::path path = first;;) {
    auto mapped = base::MappedFile::open(path.string());
    if (!mapped) throw SetupError(mapped.error());
    if (const auto kind = storage::file_kind(mapped->bytes()); kind != storage::FileKind::event_file) {
      Error error = storage::no_event_file(kind, mapped->bytes(), path.string());
      error.code = "readout.no_event_file";
      if (kind == storage::FileKind::block_recording) error.next = "play it with readout.input.type = \"file\"";
      throw SetupError(std::move(error));
    }
    files_.push_back({std::move(*mapped), path});
    const std::string next = follow ? next_name(path.filename().string()) : "";
    path = path.parent_path() / next;
    if (std::error_code unknown; next.empty() || !std::filesystem::exists(path, unknown)) break;
  }
  std::set<PlayedLink> found;
  for (const File& file : files_) find_links(file, found);
  if (const auto whole = check(); !whole) throw SetupError(whole.error());
  if (damaged_ > 0) {
    base::log_warning("{}: damaged in {}; the intact events are played, and the run will not be GOOD", first.string(),
                      base::counted(damaged_, "place"));
  }
  if (events_ == 0 || found.empty()) {
    throw SetupError(Error{"readout.no_chunks",
                           events_ == 0 ? "the file has no event" : "the events have no chunk records of links",
                           first.string(), "`rodeo data list` shows its contents"});
  }
  keep_links(found, robs);
}

// Takes the links of the wanted ROBs. An input has one link of each id.
void PlayedFiles::keep_links(const std::set<PlayedLink>& found, std::span<const std::uint32_t> robs) {
  const std::string name = files_.front().path.string();
  for (const std::uint32_t rob : robs) {
    if (std::ranges::find(found, SourceId{rob}, &PlayedLink::rob) == found.end()) {
      throw SetupError(Error{"readout.no_such_rob", fmt::format("has no chunks of ROB {}", to_text(SourceId{rob})), name,
                             "`rodeo data dump` shows the ROBs of an event"});
    }
  }
  for (const PlayedLink& link : found) {
    if (robs.empty() || std::ranges::find(robs, link.rob.value) != robs.end()) links_.push_back(link);
  }
  std::ranges::sort(links_, {}, [](const PlayedLink& link) { return std::pair(link.link_id, link.rob); });
  const auto twice = std::ranges::adjacent_find(links_, {}, &PlayedLink::link_id);
  if (twice == links_.end()) return;
  throw SetupError(
      Error{"readout.link_of_two_robs",
            fmt::format("ROB {} and ROB {} have links with the same id {:#010x}, which one input cannot tell apart",
                        to_text(twice->rob), to_text(std::next(twice)->rob), twice->link_id),
            name,
            fmt::format("play one of them: readout.input.robs = [\"{}\"]; a second readout can play the other",
                        to_text(twice->rob))});
}

Result<void> PlayedFiles::check() const {
  for (const File& file : files_) RODEO_TRY(file.mapped.check());
  return {};
}

// Takes the links from the header if it names them, else from every chunk.
void PlayedFiles::find_links(const File& file, std::set<PlayedLink>& links) {
  auto reader = storage::EventFileReader::open(file.mapped.bytes());
  if (!reader) {
    throw SetupError(
        Error{"data.header", reader.error().message(), file.path.string(), "`rodeo data recover` saves the intact events"});
  }
  numbers_.begin(*reader);
  bool named = false;
  for (const std::string& text : reader->header().free_strings) {
    const auto of_rob = read_links_string(text);
    if (!of_rob) continue;
    named = true;
    for (const std::uint32_t link_id : of_rob->link_ids) links.insert({of_rob->source_id, link_id});
  }
  std::vector<std::byte> block_buffer;
  std::vector<std::byte> buffer;
  while (true) {
    const auto next = reader->next();
    if (!next) {
      ++damaged_;
      break;
    }
    if (!*next) break;
    const auto bytes = reader->event(**next, block_buffer);
    const auto event = decode_full_event(bytes);
    if (!event) {
      ++damaged_;
      continue;
    }
    count(*event, bytes.size());
    if (named) continue;
    const auto robs = event->robs(buffer);
    if (!robs) continue;
    (void)for_each_rob(*robs, [&](const RobView& rob, std::size_t) {
      const auto rod = rob.rod();
      if (rod)
        (void)for_each_chunk_record(
            rod->data.bytes(), [&](const ChunkRecord& record) { links.insert({rob.source_id, record.header.link_id}); });
    });
  }
}

void PlayedFiles::count(const FullEventView& event, std::size_t bytes) {
  const std::uint64_t payload = event.uncompressed_words * kWordBytes;
  const std::uint64_t believed = std::min<std::uint64_t>(payload, event.payload.bytes().size() * kZlibLargestRatio);
  largest_ = std::max<std::size_t>(largest_, bytes + static_cast<std::size_t>(believed));
  const std::int64_t number = numbers_.of(event);
  const std::uint64_t time = std::uint64_t{event.bc_time_s} * 1'000'000'000U + event.bc_time_ns;
  if (events_++ == 0) {
    lowest_ = highest_ = number;
    first_ns_ = last_ns_ = time;
  }
  last_ns_ = std::max(last_ns_, time);
  lowest_ = std::min(lowest_, number);
  highest_ = std::max(highest_, number);
}

std::uint64_t EventPlayback::due_ns(std::uint64_t number, std::uint64_t time_ns) const {
  switch (timing) {
    case EventTiming::recorded: return time_ns;
    case EventTiming::rate: return static_cast<std::uint64_t>(static_cast<double>(number) * 1e9 / rate_hz);
    case EventTiming::fast: break;
  }
  return 0;
}

}  // namespace rodeo::input
