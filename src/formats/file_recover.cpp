#include "formats/file_recover.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "formats/event_check.h"
#include "formats/event_file_reader.h"
#include "formats/words.h"
#include "formats/zlib_stream.h"

namespace rodeo::formats {
namespace {

// Offset of a marker's bytes at or after `from`; the file's size if there is none.
std::size_t find_marker(std::span<const std::byte> file, std::size_t from, std::uint32_t marker) {
  std::array<std::byte, kWordBytes> pattern;
  store_word(pattern.data(), marker);
  const void* at = ::memmem(file.data() + from, file.size() - from, pattern.data(), pattern.size());
  return at == nullptr ? file.size() : static_cast<std::size_t>(static_cast<const std::byte*>(at) - file.data());
}

// The next place that could be a separator or an event; markers already found ahead are kept.
class MarkerSearch {
 public:
  explicit MarkerSearch(std::span<const std::byte> file) : file_(file) {}

  std::size_t next(std::size_t from) {
    if (separator_ < from || fresh_) separator_ = find_marker(file_, from, kSeparatorMarker);
    if (event_ < from || fresh_) event_ = find_marker(file_, from, kFullEventMarker);
    fresh_ = false;
    return std::min(separator_, event_);
  }

 private:
  std::span<const std::byte> file_;
  std::size_t separator_ = 0;
  std::size_t event_ = 0;
  bool fresh_ = true;
};

class Scanner {
 public:
  Scanner(std::span<const std::byte> file, const std::function<Result<void>(const FoundEvent&)>& found)
      : file_(file), found_(found), search_(file) {}

  Result<ScanTotals> run() {
    std::size_t at = start();
    while (at < file_.size()) {
      if (decode_file_end(file_.subspan(at))) {
        totals_.closed = true;
        break;
      }
      std::size_t next = 0;
      if (auto taken = take(at, next); !taken) return std::unexpected(taken.error());
      at = next != 0 ? next : skip_to(at, search_.next(at + 1));
    }
    if (!totals_.closed) totals_.findings.add(file_.size(), "the file ends without an end record");
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
    return totals_.header->size_bytes;
  }

  // Takes the block or bare event at `at`, if it is whole; `next` is what follows it, or 0.
  Result<void> take(std::size_t at, std::size_t& next) {
    const std::span<const std::byte> rest = file_.subspan(at);
    const Decoded<Separator> separator = decode_separator(rest);
    if (separator) {
      const auto block = rest.subspan(kSeparatorBytes, separator->block_bytes);
      if (is_whole(block, fmt::format("data block {}", separator->block_number), at + kSeparatorBytes)) {
        next = at + kSeparatorBytes + block.size();
        return keep(block, at + kSeparatorBytes);
      }
      return {};
    }
    if (load_is(rest, kSeparatorMarker)) report(separator.error().from(at).offset, separator.error().what());
    if (compressed_ || !load_is(rest, kFullEventMarker)) return {};
    const Decoded<FullEventView> event = decode_full_event(rest);
    if (!event || !is_whole(event->words.bytes(), "event without a separator", at)) return {};
    next = at + event->words.bytes().size();
    return keep(event->words.bytes(), at);
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

  Result<void> keep(std::span<const std::byte> stored, std::size_t offset) {
    ++totals_.events;
    return found_({.offset = offset, .stored = stored, .run_number = run_number_});
  }

  // An event that is tried as a data block and once more without its separator is reported once.
  void report(std::size_t offset, const std::string& what) {
    if (offset < reported_up_to_) return;
    totals_.findings.add(offset, what);
    reported_up_to_ = offset + 1;
  }

  static bool load_is(std::span<const std::byte> bytes, std::uint32_t marker) {
    return bytes.size() >= kWordBytes && load_word(bytes.data()) == marker;
  }

  // Damage between two whole events counts once, however often the search stops inside it.
  std::size_t skip_to(std::size_t from, std::size_t to) {
    if (from != damaged_up_to_ || totals_.damaged_places == 0) ++totals_.damaged_places;
    totals_.skipped_bytes += to - from;
    damaged_up_to_ = to;
    return to;
  }

  std::span<const std::byte> file_;
  const std::function<Result<void>(const FoundEvent&)>& found_;
  MarkerSearch search_;
  EventChecker checker_{EventExpectations{}};
  ScanTotals totals_;
  std::vector<std::byte> buffer_;
  std::size_t damaged_up_to_ = 0;
  std::size_t reported_up_to_ = 0;
  std::uint32_t run_number_ = 0;
  bool compressed_ = false;
};

bool written_by_encoder(const std::string& text) {
  constexpr std::string_view kKeys[] = {
      "GUID=", "Rodeo-CRC32=", "Rodeo-Format=", "Rodeo-Payload=", "Rodeo-Recovered=", "Stream=", "Project=", "LumiBlock="};
  return std::ranges::any_of(kKeys, [&](std::string_view key) { return text.starts_with(key); });
}

EventFileSettings settings_like(const ScanTotals& scan, const std::string& name, std::uint32_t run_number) {
  EventFileSettings settings;
  settings.simple_name = name + ".recovered";
  settings.run.run_number = run_number;
  if (scan.header) {
    const DecodedFileHeader& header = *scan.header;
    settings.application = header.application;
    settings.run = header.run;
    const std::string stream(header.free_string("Stream"));
    if (const std::size_t bar = stream.find('_'); bar != std::string::npos) {
      settings.stream_type = stream.substr(0, bar);
      settings.stream_name = stream.substr(bar + 1);
    }
    if (const auto project = header.free_string("Project"); !project.empty()) settings.project = project;
    settings.lumi_block =
        static_cast<std::uint32_t>(std::strtoul(std::string(header.free_string("LumiBlock")).c_str(), nullptr, 10));
    settings.foreign_events = header.free_string(kFormatKey) != "1";
    settings.provable = ProvableMark::parse(header.free_string(kProvableKey));
    for (const std::string& text : header.free_strings) {
      if (!written_by_encoder(text)) settings.free_strings.push_back(text);
    }
  }
  settings.free_strings.push_back(fmt::format("Rodeo-Recovered={} whole events of {}, {} damaged places, {} bytes left out",
                                              scan.events, name, scan.damaged_places, scan.skipped_bytes));
  return settings;
}

}  // namespace

Result<ScanTotals> scan_events(std::span<const std::byte> file,
                               const std::function<Result<void>(const FoundEvent&)>& found) {
  return Scanner(file, found).run();
}

std::optional<std::uint64_t> find_event_marker(std::span<const std::byte> file) {
  const std::size_t at = MarkerSearch(file).next(0);
  return at < file.size() ? std::optional<std::uint64_t>(at) : std::nullopt;
}

Result<RecoverResult> recover_events(std::span<const std::byte> file, const std::string& directory,
                                     const std::string& name) {
  // The first pass counts, because the new file's header says what was saved.
  std::uint32_t run_number = 0;
  Result<ScanTotals> scan = scan_events(file, [&](const FoundEvent& event) -> Result<void> {
    run_number = event.run_number;
    return {};
  });
  if (!scan) return std::unexpected(scan.error());
  RecoverResult result{.scan = std::move(*scan), .written = std::nullopt};
  if (result.scan.events == 0) return result;
  EventFileWriter writer(directory, settings_like(result.scan, name, run_number));
  const auto saved = scan_events(file, [&](const FoundEvent& event) { return writer.add(event.stored); });
  Result<void> done = saved ? writer.close() : std::unexpected(saved.error());
  if (!done) {
    writer.discard();
    return std::unexpected(done.error());
  }
  result.written = writer.files().front();
  return result;
}

}  // namespace rodeo::formats
