#include "storage/file_recover.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include "formats/checksum.h"
#include "formats/event_check.h"
#include "formats/words.h"
#include "formats/zlib_stream.h"
#include "storage/derived_files.h"
#include "storage/event_file_reader.h"
#include "storage/event_file_sequence.h"
#include "storage/event_numbers.h"
#include "storage/file_verify.h"

namespace rodeo::storage {

using namespace formats;

namespace {

// Offset of the next marker at or after `from`; the file's size if there is none.
std::size_t find_marker(std::span<const std::byte> file, std::size_t from, std::uint32_t marker) {
  std::array<std::byte, kWordBytes> pattern;
  store_word(pattern.data(), marker);
  const void* at = ::memmem(file.data() + from, file.size() - from, pattern.data(), pattern.size());
  return at == nullptr ? file.size() : static_cast<std::size_t>(static_cast<const std::byte*>(at) - file.data());
}

// Finds the next place that may be a separator, an event or the end record; keeps markers found ahead.
class MarkerSearch {
 public:
  explicit MarkerSearch(std::span<const std::byte> file) : file_(file) {}

  std::size_t next(std::size_t from) {
    std::size_t nearest = file_.size();
    for (Next& one : next_) {
      if (!one.at || *one.at < from) one.at = find_marker(file_, from, one.marker);
      nearest = std::min(nearest, *one.at);
    }
    return nearest;
  }

 private:
  struct Next {
    std::uint32_t marker;
    std::optional<std::size_t> at = {};
  };

  std::span<const std::byte> file_;
  std::array<Next, 3> next_{{{kSeparatorMarker}, {kFullEventMarker}, {kFileEndMarker}}};
};

class Scanner {
 public:
  Scanner(std::span<const std::byte> file, const std::function<Result<void>(const FoundEvent&)>& found,
          const Progress& progress, const std::function<bool()>& stop)
      : file_(file), found_(found), progress_(progress), stop_(stop), search_(file), checks_(find_header_checks(file)) {}

  Result<ScanTotals> run() {
    std::size_t at = start();
    std::optional<FileEnd> end;  // the end record, if no whole event follows it
    std::size_t end_at = 0;
    while (at < file_.size()) {
      const std::size_t before = at;
      if (const auto record = decode_file_end(file_.subspan(at))) {
        end = *record;
        end_at = at;
        at = behind_end(at);
      } else {
        std::size_t next = 0;
        RODEO_TRY(save(at, next));
        if (next != 0) {
          known_up_to_ = next;
          end.reset();
        }
        at = next != 0 ? next : skip_to(at, search_.next(at + 1));
      }
      add_progress(progress_, at - before);
      if (stop_ && stop_())
        return std::unexpected(
            Error{"data.interrupted", "interrupted: the new files were removed", "", "the file that was read is unchanged"});
    }
    totals_.closed = end.has_value();
    if (!end) end_at = at;
    numbers_.finish(end, end_at, end_at - known_up_to_);
    totals_.missing_events = numbers_.missing();
    if (!end) totals_.findings.add(file_.size(), "the file ends without an end record");
    return std::move(totals_);
  }

 private:
  std::size_t start() {
    Decoded<DecodedFileHeader> header = decode_file_header(file_);
    if (!header) {
      totals_.findings.add(header.error().offset, header.error().what());
      return file_.empty() ? 0 : skip_to(0, search_.next(0));
    }
    totals_.header = std::move(*header);
    compressed_ = totals_.header->compressed_blocks();
    // Files of other writers may begin with any number.
    if (totals_.header->file_number == 1 && !totals_.header->free_string(kFormatKey).empty()) numbers_.begin_at(1);
    return known_up_to_ = totals_.header->size_bytes;
  }

  // Takes the block or bare event at `at`, if it is whole; `next`: the offset behind it, or 0.
  Result<void> save(std::size_t at, std::size_t& next) {
    const std::span<const std::byte> rest = file_.subspan(at);
    const Decoded<Separator> separator = decode_separator(rest);
    if (separator) {
      const auto whole = rest.subspan(kSeparatorBytes, separator->block_bytes);
      const auto block = compressed_ ? whole : split_block(whole).event;
      if (is_whole(block, fmt::format("data block {}", separator->block_number), at + kSeparatorBytes)) {
        next = at + kSeparatorBytes + whole.size();
        numbers_.found(separator->block_number, at, at > known_up_to_);
        last_number_ = separator->block_number;
        return keep(block, at + kSeparatorBytes, proof_of(block, at + kSeparatorBytes, separator->block_number));
      }
    }
    if (load_is(rest, kSeparatorMarker)) {
      if (!separator) report(separator.error().from(at).offset, separator.error().what());
      if (rest.size() >= kSeparatorBytes) numbers_.damaged(WordView(rest)[2]);
      return {};
    }
    if (compressed_ || !load_is(rest, kFullEventMarker)) return {};
    const Decoded<FullEventView> event = decode_full_event(rest);
    if (!event || !is_whole(event->words.bytes(), "event without a separator", at)) return {};
    next = at + event->words.bytes().size();
    numbers_.found({}, at, at > known_up_to_);
    // The number of this event is unknown. If the next number is right, its check proves the header; otherwise nothing is
    // known.
    const HeaderProof proof = proof_of(event->words.bytes(), at, ++last_number_);
    return keep(event->words.bytes(), at, proof == HeaderProof::holds ? proof : HeaderProof::none);
  }

  bool is_whole(std::span<const std::byte> block, const std::string& name, std::size_t offset) {
    std::span<const std::byte> event = block;
    if (compressed_) {
      buffer_ = zlib_decompress_all(block, kLargestEventBytes);
      event = buffer_;
    }
    Findings damage;
    const bool whole = checker_.check(event, offset, name, damage);
    for (const Finding& finding : damage.listed()) report(finding.offset, finding.what);
    if (whole) run_number_ = decode_full_event(event)->run_number;
    return whole;
  }

  HeaderProof proof_of(std::span<const std::byte> event, std::size_t offset, std::uint32_t number) const {
    return compressed_ ? HeaderProof::none : prove_header(checks_, offset, number, event);
  }

  Result<void> keep(std::span<const std::byte> stored, std::size_t offset, HeaderProof proof) {
    ++totals_.events;
    return found_({.offset = offset, .stored = stored, .run_number = run_number_, .header = proof, .part = part_});
  }

  // An event that is tried as a data block and again without its separator is reported once.
  void report(std::size_t offset, const std::string& what) {
    if (offset < reported_up_to_) return;
    totals_.findings.add(offset, what);
    reported_up_to_ = offset + 1;
  }

  static bool load_is(std::span<const std::byte> bytes, std::uint32_t marker) {
    return bytes.size() >= kWordBytes && load_word(bytes.data()) == marker;
  }

  // The place to continue after an end record. If the record is not at the end of the file, there is damage, or another file
  // was appended.
  std::size_t behind_end(std::size_t at) {
    ++part_;
    const std::size_t behind = at + kFileEndBytes;
    if (behind == file_.size()) return behind;
    totals_.findings.add(at, fmt::format("an end record with {} bytes behind it", file_.size() - behind));
    return skip_to(behind, search_.next(behind));
  }

  // Damage between two whole events counts once, even if the search stops inside it several times.
  std::size_t skip_to(std::size_t from, std::size_t to) {
    if (from != damaged_up_to_ || totals_.damaged_places == 0) ++totals_.damaged_places;
    totals_.skipped_bytes += to - from;
    damaged_up_to_ = to;
    return to;
  }

  std::span<const std::byte> file_;
  const std::function<Result<void>(const FoundEvent&)>& found_;
  const Progress& progress_;
  const std::function<bool()>& stop_;
  MarkerSearch search_;
  std::vector<PlacedHeaderChecks> checks_;
  EventChecker checker_{EventExpectations{}};
  ScanTotals totals_;
  EventNumbers numbers_{totals_.findings};
  std::vector<std::byte> buffer_;
  std::size_t known_up_to_ = 0;  // end of the last whole event
  std::size_t damaged_up_to_ = 0;
  std::size_t reported_up_to_ = 0;
  std::uint32_t run_number_ = 0;
  std::uint32_t last_number_ = 0;  // number of the last data block
  std::uint64_t part_ = 0;         // number of end records up to now
  bool compressed_ = false;
};

using namespace event_word;

// Finds words in headers of Rodeo's events that must be damaged, and their original values.
class HeaderDoubts {
 public:
  struct Doubt {
    std::uint64_t event;  // index among the saved events, from 0
    Replacement right;
  };

  // `damaged`: there is known damage. Otherwise events that were written out of order explain times and ids out of order.
  // `recovered`: events may be marked by an earlier recovery. `whole`: whole events of a farm, each with its own stream
  // tags.
  HeaderDoubts(bool damaged, bool recovered, bool whole) : damaged_(damaged), recovered_(recovered), whole_(whole) {}

  // Adds an event; call it only for files that do not compress whole events.
  void add(std::uint64_t event, const FoundEvent& found) {
    const Decoded<FullEventView> view = decode_full_event(found.stored);
    if (found.part != std::exchange(part_, found.part)) begin_anew();
    if (recovered_ && view->header_not_proven()) return;
    compare_with_rob(*view, event, found.offset);
    seen_.push_back({event, found.offset, view->words.sub(0, view->header_words).to_vector()});
    if (seen_.size() > 3) seen_.erase(seen_.begin());
    if (seen_.size() < 3) return;
    if (!std::exchange(judged_first_, true)) compare(seen_[0], seen_[1], seen_[2]);
    compare(seen_[1], seen_[0], seen_[2]);
  }

  // Ends the list of events.
  void finish() {
    begin_anew();
    std::ranges::sort(doubts_, {}, [](const Doubt& doubt) { return doubt.right.offset; });
    const auto same = std::ranges::unique(doubts_, {}, [](const Doubt& doubt) { return doubt.right.offset; });
    doubts_.erase(same.begin(), same.end());
  }

  const std::vector<Doubt>& all() const { return doubts_; }

 private:
  struct Seen {
    std::uint64_t event = 0;
    std::uint64_t offset = 0;
    std::vector<std::uint32_t> header;
  };

  // Says that the next events are unrelated to those before.
  void begin_anew() {
    if (seen_.size() == 3) compare(seen_[2], seen_[0], seen_[1]);
    seen_.clear();
    judged_first_ = false;
  }

  // Compares a header with two neighbours: words that agree in both must agree in this event, too, except for words that
  // belong to each event alone.
  void compare(const Seen& event, const Seen& one, const Seen& other) {
    if (event.header.size() != one.header.size() || event.header.size() != other.header.size()) return;
    for (std::size_t word = kVersion; word < event.header.size(); ++word) {
      const bool own = word == kStatus || word == kNanoseconds || word == kGlobalIdLow ||
                       (word >= kL1Id && word != kCompression && word <= kUncompressedWords) ||
                       (whole_ && word >= kL1Info) || (!damaged_ && (word == kSeconds || word == kGlobalIdHigh));
      if (!own && one.header[word] == other.header[word])
        expect(event.event, event.offset, word, event.header[word], one.header[word]);
    }
  }

  void compare_with_rob(const FullEventView& event, std::uint64_t number, std::uint64_t offset) {
    if (event.status.size() != 1) return;
    const auto is = [&](std::size_t word, std::uint32_t right) { expect(number, offset, word, event.words[word], right); };
    if (event.compression == Compression::none) is(kUncompressedWords, static_cast<std::uint32_t>(event.payload.size()));
    const Decoded<WordView> robs = event.robs(buffer_);
    const Decoded<RobView> rob = robs ? decode_rob(robs->bytes()) : std::unexpected(robs.error());
    if (!rob || rob->words.size() != robs->size()) return;
    const Decoded<RodView> rod = rob->rod();
    if (!rod) return;
    if (!whole_) is(kStatus, rob->status.empty() ? 0 : rob->status[0] & 0xffff);
    is(kRunNumber, rod->header.run_number);
    is(kL1Id, rod->header.l1id.value);
    is(kBcid, rod->header.bcid);
    is(kTriggerType, rod->header.trigger_type);
  }

  void expect(std::uint64_t event, std::uint64_t offset, std::size_t word, std::uint32_t found, std::uint32_t right) {
    if (found != right) doubts_.push_back({event, {offset + word * kWordBytes, right}});
  }

  bool damaged_;
  bool recovered_;
  bool whole_;
  bool judged_first_ = false;
  std::uint64_t part_ = 0;
  std::vector<Seen> seen_;  // the last three events
  std::vector<Doubt> doubts_;
  std::vector<std::byte> buffer_;
};

// A copy of the event with the mark that its header is not proven.
std::vector<std::byte> marked_event(std::span<const std::byte> event) {
  std::vector<std::byte> copy(event.begin(), event.end());
  if (load_word(copy.data() + kStatusWords * kWordBytes) == 0) {
    copy.insert(copy.begin() + kStatus * kWordBytes, kWordBytes, std::byte{0});
    for (const std::size_t size : {kSize, kHeaderSize, kStatusWords})
      store_word(copy.data() + size * kWordBytes, load_word(copy.data() + size * kWordBytes) + 1);
  }
  std::byte* const status = copy.data() + kStatus * kWordBytes;
  store_word(status, load_word(status) | kHeaderNotProven);
  return copy;
}

EventFileSettings settings_of(const RecoverResult& result, const std::string& name, std::uint32_t run_number) {
  const ScanTotals& scan = result.scan;
  EventFileSettings settings = scan.header ? settings_like(*scan.header) : EventFileSettings{};
  if (!scan.header) settings.run.run_number = run_number;
  settings.free_strings.push_back(
      fmt::format("{}={} whole events of {}, {} missing, {} damaged places, {} bytes left out, {} events marked{}",
                  kRecoveredKey, scan.events, name, scan.missing_events, scan.damaged_places, scan.skipped_bytes,
                  result.marked, result.headers_proven ? "" : "; no checksum proves headers"));
  return settings;
}

}  // namespace

Result<ScanTotals> scan_events(std::span<const std::byte> file, const std::function<Result<void>(const FoundEvent&)>& found,
                               const Progress& progress, const std::function<bool()>& stop) {
  return Scanner(file, found, progress, stop).run();
}

std::optional<std::uint64_t> find_event_marker(std::span<const std::byte> file) {
  const std::size_t at = std::min(find_marker(file, 0, kSeparatorMarker), find_marker(file, 0, kFullEventMarker));
  return at < file.size() ? std::optional<std::uint64_t>(at) : std::nullopt;
}

Result<RecoverResult> recover_events(std::span<const std::byte> file, const std::string& directory, const std::string& name,
                                     const Progress& progress, const std::function<bool()>& stop) {
  const Decoded<DecodedFileHeader> header = decode_file_header(file);
  const bool ours = header && header->free_string(kFormatKey) == "1";
  const FileCrc crc = header ? check_file_crc(file, *header) : FileCrc::foreign;
  // The first pass counts and checks, because the new file's header contains the result.
  std::uint32_t run_number = 0;
  std::uint64_t events = 0;
  std::vector<std::uint64_t> sums;  // checksums of the events, to find duplicates
  std::vector<bool> proven;
  std::set<std::uint64_t> marked;
  Findings wrong_headers;
  HeaderDoubts doubts(crc == FileCrc::wrong, header && !header->free_string(kRecoveredKey).empty(),
                      header && !header->free_string(kWholeEventsKey).empty());
  Result<ScanTotals> scan = scan_events(
      file,
      [&](const FoundEvent& event) -> Result<void> {
        run_number = event.run_number;
        if (ours && !header->compressed_blocks() && crc != FileCrc::holds) doubts.add(events, event);
        sums.push_back(std::uint64_t{crc32(event.stored)} << 32 | adler32(event.stored));
        proven.push_back(event.header == HeaderProof::holds);
        if (event.header == HeaderProof::wrong) {
          marked.insert(events);
          wrong_headers.add(event.offset, "event header: its check shows that it was changed after writing");
        }
        ++events;
        return {};
      },
      progress, stop);
  if (!scan) return std::unexpected(scan.error());
  doubts.finish();
  RecoverResult result{.scan = std::move(*scan), .written = std::nullopt};
  if (events == 0) return result;
  std::ranges::sort(sums);
  const auto once = std::ranges::unique(sums);
  result.repeated = static_cast<std::uint64_t>(once.size());
  if (result.repeated > 0) {
    result.scan.findings.add(
        0, fmt::format("{} events occur more than once, byte for byte: a file was joined with itself, or with "
                       "others that have the same events; all of them are kept",
                       result.repeated));
  }

  const bool checks_say_where = !marked.empty();
  result.scan.findings.append(wrong_headers);
  std::vector<Replacement> right;
  for (const HeaderDoubts::Doubt& doubt : doubts.all()) {
    if (proven[doubt.event]) continue;
    marked.insert(doubt.event);
    right.push_back(doubt.right);
    result.scan.findings.add(doubt.right.offset, fmt::format("event header: the word is {:#x}, but its context gives {:#x}",
                                                             load_word(file.data() + doubt.right.offset), doubt.right.word));
  }
  result.headers_proven =
      crc == FileCrc::holds || (!right.empty() && check_file_crc(file, *header, right) == FileCrc::holds);
  const bool located = result.headers_proven || checks_say_where || result.scan.damaged_places > 0 || !result.scan.closed;
  const bool mark_all = crc == FileCrc::wrong && !located;
  const auto is_marked = [&](std::uint64_t event) { return marked.contains(event) || (mark_all && !proven[event]); };
  std::uint64_t unproven = 0;
  for (std::uint64_t event = 0; event < events; ++event) {
    result.marked += is_marked(event) ? 1 : 0;
    unproven += !proven[event] && !is_marked(event) ? 1 : 0;
  }
  result.headers_proven = result.headers_proven || unproven == 0;
  if (mark_all && result.marked > 0) {
    result.scan.findings.add(0,
                             "the CRC-32 over the whole file shows damage at an unknown place: it may be in the "
                             "header of any event without a check, so all of these are marked");
  }

  const bool compressed = result.scan.header && result.scan.header->compressed_blocks();
  const DerivedTarget target{directory, name + ".recovered"};
  DerivedFiles written = RODEO_TRY(DerivedFiles::create(target, settings_of(result, name, run_number)));
  std::uint64_t number = 0;
  const auto again = scan_events(
      file,
      [&](const FoundEvent& event) -> Result<void> {
        std::vector<std::byte> changed;
        std::span<const std::byte> bytes = event.stored;
        if (is_marked(number++)) {
          changed = compressed ? zlib_compress(marked_event(zlib_decompress_all(bytes, kLargestEventBytes)), 1)
                               : marked_event(bytes);
          bytes = changed;
        }
        return written.append(bytes);
      },
      progress, stop);
  if (!again) return std::unexpected(again.error());
  result.written = RODEO_TRY(written.keep()).front();
  return result;
}

}  // namespace rodeo::storage
