#include "storage/file_verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <mutex>

#include "base/parallel.h"
#include "formats/checksum.h"
#include "formats/header_checks.h"
#include "formats/words.h"
#include "storage/event_file_reader.h"
#include "storage/file_sums.h"

namespace rodeo::storage {

using namespace formats;

namespace {

// Offset of the value of a free string. The header has been decoded, so the record is valid.
std::size_t offset_of_value(std::span<const std::byte> file, const DecodedFileHeader& header, std::string_view key) {
  std::size_t at = header.free_strings_offset + 2 * kWordBytes;
  for (const std::string& text : header.free_strings) {
    if (text.starts_with(key) && text[key.size()] == '=') return at + kWordBytes + key.size() + 1;
    at += kWordBytes + padded_to_word(text.size());
  }
  return file.size();
}

bool has_rodeo_string(const DecodedFileHeader& header) {
  return std::ranges::any_of(header.free_strings, [](const std::string& s) { return s.starts_with(kRodeoPrefix); });
}

FileCrc judge(const DecodedFileHeader& header, std::uint32_t crc) {
  if (!has_rodeo_string(header)) return FileCrc::foreign;
  const std::optional<std::uint32_t> stored = read_crc_digits(header.free_string(kCrcKey));
  if (!stored) return FileCrc::missing;
  if (crc == *stored) return FileCrc::holds;
  return *stored == 0 ? FileCrc::open : FileCrc::wrong;
}

void check_crc(std::span<const std::byte> file, std::uint32_t crc, EventFileReport& report) {
  const DecodedFileHeader& header = *report.header;
  report.crc = judge(header, crc);
  const std::string_view digits = header.free_string(kCrcKey);
  const std::size_t at = offset_of_value(file, header, kCrcKey);
  if (report.crc == FileCrc::missing) {
    report.findings.add(header.free_strings_offset,
                        digits.empty() ? fmt::format("the free string {} is missing in a file that Rodeo wrote", kCrcKey)
                                       : fmt::format("{}={} is not eight lower-case hex digits", kCrcKey, digits));
  } else if (report.crc == FileCrc::open) {
    report.findings.add(at, "the file was never closed: its CRC is still open");
  } else if (report.crc == FileCrc::wrong) {
    report.findings.add(at, fmt::format("the CRC-32 over the whole file is not {}, the value in the file", digits));
  }
}

EventExpectations with_payload(EventFileReport& report, const VerifyOptions& options) {
  EventExpectations expectations = expectations_of(*report.header, report.crc);
  if (!expectations.ours) return expectations;
  const std::string_view value = report.header->free_string(kProvableKey);
  report.provable = ProvableMark::parse(value);
  if (!value.empty() && !report.provable) {
    report.findings.add(report.header->free_strings_offset, fmt::format("{}={} is not understood", kProvableKey, value));
  }
  if (options.prove) expectations.provable = report.provable;
  return expectations;
}

void check_end(const EventFileReport& report, std::uint64_t position, std::uint32_t last_number, std::uint64_t file_bytes,
               Findings& findings) {
  const FileEnd& end = *report.end;
  const std::uint64_t at = position - kFileEndBytes;
  const auto compare = [&](const char* field, std::uint64_t found, std::uint64_t expected) {
    if (found != expected) findings.add(at, fmt::format("end record: {} is {}, counted are {}", field, found, expected));
  };
  compare("number of blocks in the file", end.blocks_in_file, report.blocks);
  if (position != file_bytes) findings.add(position, fmt::format("{} bytes follow the end record", file_bytes - position));
  if (!report.ours()) return;
  compare("MiB in the file", end.mib_in_file, rounded_mib(report.block_bytes));
  if (report.blocks > 0) compare("number of blocks in the sequence", end.blocks_in_sequence, last_number);
  if (report.header->file_number == 1) compare("MiB in the sequence", end.mib_in_sequence, end.mib_in_file);
  if (end.last_file > 1) findings.add(at + 32, fmt::format("end record: status is {}, not 0 or 1", end.last_file));
}

// The reason why no record could be read at its place, as text.
std::string end_reason(const DecodeError& error, bool at_end) {
  if (at_end) return "the file ends without an end record: it was not closed, or was cut";
  if (error.fault != DecodeFault::too_large) return error.what();
  return fmt::format("a data block of {} bytes starts here, but only {} are left: the file was cut, or the size is damaged",
                     error.found, error.expected);
}

// Blocks that one thread checks at a time, and the findings. Each thread reads the records between the blocks of its batch.
struct Batch {
  struct Block {
    EventBlock block;
    std::optional<std::uint32_t> expected;  // the number that the block should have, if its number is wrong
  };
  std::size_t index = 0;
  std::vector<Block> blocks;
  Findings wrong_headers;
  std::uint64_t bytes = 0;
  std::optional<Finding> end;  // place and reason, if no record could be read after the blocks
};

constexpr std::uint64_t kBatchBytes = 1 << 20;
constexpr std::size_t kBatchBlocks = 4096;

// Gives out the blocks of a file in batches and joins the findings in order. Any thread.
class BatchedWalk {
 public:
  BatchedWalk(EventFileReader& reader, std::size_t file_bytes, EventFileReport& report)
      : reader_(reader), file_bytes_(file_bytes), report_(report) {}

  // False: no batch is left.
  bool next(Batch& batch) {
    const std::lock_guard lock(mutex_);
    if (ended_) return false;
    batch = {.index = taken_++, .blocks = {}, .wrong_headers = {}, .bytes = 0, .end = {}};
    while (batch.bytes < kBatchBytes && batch.blocks.size() < kBatchBlocks) {
      const Decoded<std::optional<EventBlock>> next = reader_.next();
      ended_ = !next || !*next;
      if (!next) {
        const bool at_end = reader_.position() == file_bytes_;
        batch.end = Finding{next.error().offset, end_reason(next.error(), at_end)};
        if (!at_end) report_.unread = batch.end;
      }
      if (ended_) break;
      batch.blocks.push_back({**next, unexpected_number(**next)});
      batch.bytes += kSeparatorBytes + (*next)->bytes();
      check_header(**next, batch.wrong_headers);
    }
    return true;
  }

  void put(std::size_t index, Findings found) {
    const std::lock_guard lock(mutex_);
    waiting_.emplace(index, std::move(found));
    for (auto next = waiting_.find(put_); next != waiting_.end(); next = waiting_.find(put_)) {
      report_.findings.append(next->second);
      waiting_.erase(next);
      ++put_;
    }
  }

  void add(const EventTotals& totals) {
    const std::lock_guard lock(mutex_);
    report_.totals += totals;
  }

  std::uint32_t last_number() const { return last_number_; }

 private:
  std::optional<std::uint32_t> unexpected_number(const EventBlock& block) {
    const bool first = report_.blocks == 0;
    const bool other =
        first ? report_.ours() && report_.header->file_number == 1 && block.number != 1 : block.number != last_number_ + 1;
    const std::uint32_t expected = first ? 1 : last_number_ + 1;
    last_number_ = block.number;
    ++report_.blocks;
    report_.block_bytes += block.bytes();
    return other ? std::optional(expected) : std::nullopt;
  }

  // The check of a header is in the record behind its event or behind a later one.
  void check_header(const EventBlock& block, Findings& findings) {
    if (reader_.header().compressed_blocks()) return;
    unproven_.push_back({block.number, block.offset, header_check(block.number, block.stored)});
    if (unproven_.size() > kMostHeaderChecks) unproven_.pop_front();
    if (block.checks.empty()) return;
    const auto record = HeaderChecks::decode(block.checks);
    for (const Unproven& one : unproven_) {
      const auto check = record ? record->of(one.number) : std::nullopt;
      if (check && *check == one.check) ++report_.proven_headers;
      if (check && *check != one.check)
        findings.add(one.offset + kSeparatorBytes,
                     fmt::format("event {}: its check shows that its header was changed after writing", one.number));
    }
    unproven_.clear();
  }

  struct Unproven {
    std::uint32_t number;
    std::uint64_t offset;
    std::uint16_t check;
  };
  std::deque<Unproven> unproven_;
  std::mutex mutex_;
  EventFileReader& reader_;
  const std::size_t file_bytes_;
  EventFileReport& report_;
  bool ended_ = false;
  std::size_t taken_ = 0;
  std::uint32_t last_number_ = 0;
  std::size_t put_ = 0;
  std::map<std::size_t, Findings> waiting_;  // findings that wait for earlier batches
};

Findings check(const Batch& batch, const EventFileReader& reader, EventChecker& checker, std::vector<std::byte>& buffer) {
  Findings findings;
  for (const auto& [block, expected] : batch.blocks) {
    if (expected) findings.add(block.offset + 8, fmt::format("data block has number {}, not {}", block.number, *expected));
    const std::span<const std::byte> event = reader.event(block, buffer);
    const std::string name = fmt::format("event {}", block.number);
    if (event.empty() && !block.stored.empty()) {
      findings.add(block.offset + kSeparatorBytes, name + ": data block does not decompress");
    } else {
      checker.check(event, block.offset + kSeparatorBytes, name, findings);
    }
  }
  findings.append(batch.wrong_headers);
  if (batch.end) findings.add(batch.end->offset, batch.end->what);
  return findings;
}

void walk(std::span<const std::byte> file, const VerifyOptions& options, EventFileReport& report) {
  Decoded<EventFileReader> reader = EventFileReader::open(file);
  std::optional<std::size_t> digits;
  if (reader && read_crc_digits(reader->header().free_string(kCrcKey)))
    digits = offset_of_value(file, reader->header(), kCrcKey);
  const FileSums sums = file_sums(file, digits, options.threads, options.progress);
  report.adler32 = sums.adler32;
  if (!reader) {
    report.findings.add(reader.error().offset, reader.error().what());
    return;
  }
  report.header = reader->header();
  check_crc(file, sums.crc32, report);
  const EventExpectations expectations = with_payload(report, options);
  BatchedWalk walk(*reader, file.size(), report);
  const auto most = static_cast<unsigned>(file.size() / kBatchBytes + 1);
  base::on_threads(std::clamp(options.threads, 1U, most), [&] {
    EventChecker checker(expectations);
    std::vector<std::byte> buffer;
    for (Batch batch; walk.next(batch);) {
      walk.put(batch.index, check(batch, *reader, checker, buffer));
      add_progress(options.progress, batch.bytes);
    }
    walk.add(checker.totals());
  });
  report.end = reader->end();
  if (report.end) check_end(report, reader->position(), walk.last_number(), file.size(), report.findings);
}

}  // namespace

std::size_t crc_digits_offset(std::span<const std::byte> file, const DecodedFileHeader& header) {
  return offset_of_value(file, header, kCrcKey);
}

FileCrc check_file_crc(std::span<const std::byte> file, const DecodedFileHeader& header,
                       std::span<const Replacement> replacements) {
  if (!has_rodeo_string(header)) return FileCrc::foreign;
  if (!read_crc_digits(header.free_string(kCrcKey))) return FileCrc::missing;
  std::uint32_t crc = crc32({});
  std::size_t done = 0;
  const auto replace = [&](std::size_t at, std::span<const std::byte> bytes) {
    crc = crc32(bytes, crc32(file.subspan(done, at - done), crc));
    done = at + bytes.size();
  };
  std::array<std::byte, kCrcDigits> zeros;
  zeros.fill(std::byte{'0'});
  replace(offset_of_value(file, header, kCrcKey), zeros);
  for (const Replacement& replacement : replacements)
    replace(replacement.offset, std::as_bytes(std::span(&replacement.word, 1)));
  return judge(header, crc32(file.subspan(done), crc));
}

EventExpectations expectations_of(const DecodedFileHeader& header, FileCrc crc) {
  if (crc == FileCrc::foreign || header.free_string(kFormatKey) == "0") return {};
  return {.ours = true,
          .run_number = header.run.run_number,
          .provable = {},
          .global_ids = IdsMark::parse(header.free_string(kIdsKey)).has_value()};
}

EventFileReport verify_event_file(std::span<const std::byte> file, const VerifyOptions& options) {
  EventFileReport report;
  report.bytes = file.size();
  walk(file, options, report);
  return report;
}

std::vector<std::string> EventFileReport::unprotected() const {
  std::vector<std::string> gaps;
  if (crc != FileCrc::foreign) return gaps;
  gaps.push_back("no CRC over the file: damage to records, event headers, dates and padding can go unnoticed");
  if (totals.events_with_checksum < totals.events) {
    gaps.push_back(fmt::format("{} of {} events have no checksum that can be checked",
                               totals.events - totals.events_with_checksum, totals.events));
  }
  return gaps;
}

}  // namespace rodeo::storage
