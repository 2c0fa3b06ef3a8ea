#include "formats/event_file_records.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>

#include "formats/words.h"

namespace rodeo::formats {

using enum DecodeFault;

namespace {

constexpr std::size_t kStartWords = 8;
constexpr std::size_t kEndWords = 10;

// Reads words and texts from the front of a file; keeps the first error, and all later values are zero.
class RecordCursor {
 public:
  explicit RecordCursor(std::span<const std::byte> file) : file_(file) {}

  std::size_t at() const { return at_; }
  const std::optional<DecodeError>& failure() const { return failure_; }
  bool next_is(std::uint32_t marker) const {
    return file_.size() - at_ >= kWordBytes && load_word(file_.data() + at_) == marker;
  }

  std::uint32_t word(const char* field) {
    if (!has(kWordBytes, field)) return 0;
    const std::uint32_t word = load_word(file_.data() + at_);
    at_ += kWordBytes;
    return word;
  }

  void exactly(std::uint32_t expected, const char* field) {
    const std::uint32_t found = word(field);
    if (!failure_ && found != expected) failure_ = DecodeError{wrong_value, at_ - kWordBytes, field, found, expected};
  }

  // A text: length in bytes, then the text, padded with spaces to a word.
  std::string text(const char* field) {
    const std::uint64_t size = word(field);
    if (!has(padded_to_word(size), field)) return {};
    std::string text(size, '\0');
    std::memcpy(text.data(), file_.data() + at_, size);
    at_ += padded_to_word(size);
    return text;
  }

  void fail(const DecodeError& failure) {
    if (!failure_) failure_ = failure;
  }

 private:
  bool has(std::uint64_t bytes, const char* field) {
    const std::uint64_t left = file_.size() - at_;
    if (bytes > left) fail({truncated, at_, field, left, bytes});
    return !failure_;
  }

  std::span<const std::byte> file_;
  std::size_t at_ = 0;
  std::optional<DecodeError> failure_;
};

void append_text(std::vector<std::byte>& out, std::string_view text) {
  append_word(out, static_cast<std::uint32_t>(text.size()));
  append_bytes(out, std::as_bytes(std::span(text)));
  out.resize(padded_to_word(out.size()), std::byte{' '});
}

void append_words(std::vector<std::byte>& out, std::initializer_list<std::uint32_t> words) {
  for (const std::uint32_t word : words) append_word(out, word);
}

std::size_t run_parameter_words(std::uint32_t version) {
  switch (version) {
    case 2: return 9;
    case 5: return 10;
    case 6: return 12;
    default: return 0;
  }
}

}  // namespace

FileTime FileTime::of(std::time_t now) {
  std::tm local{};
  ::localtime_r(&now, &local);
  return {static_cast<std::uint32_t>(local.tm_mday * 1000000 + (local.tm_mon + 1) * 10000 + local.tm_year + 1900),
          static_cast<std::uint32_t>(local.tm_hour * 10000 + local.tm_min * 100 + local.tm_sec)};
}

std::string FileTime::text() const {
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", date % 10000, date / 10000 % 100, date / 1000000, time / 10000,
                     time / 100 % 100, time % 100);
}

std::string_view EventFileHeader::free_string(std::string_view key) const {
  for (const std::string& text : free_strings) {
    if (text.size() > key.size() && text.starts_with(key) && text[key.size()] == '=') {
      return std::string_view(text).substr(key.size() + 1);
    }
  }
  return {};
}

Decoded<DecodedFileHeader> decode_file_header(std::span<const std::byte> file) {
  RecordCursor cursor(file);
  DecodedFileHeader header;
  cursor.exactly(kFileStartMarker, "start record marker");
  cursor.exactly(kStartWords, "start record size in words");
  header.version = cursor.word("file version");
  if (run_parameter_words(header.version) == 0) {
    cursor.fail({unknown, cursor.at() - kWordBytes, "file version", header.version, 0});
  }
  header.file_number = cursor.word("file number");
  header.opened.date = cursor.word("date of opening");
  header.opened.time = cursor.word("time of opening");
  header.max_blocks = cursor.word("largest number of blocks");
  header.max_mib = cursor.word("largest size in MiB");

  cursor.exactly(kFileNamesMarker, "names record marker");
  header.application = cursor.text("application name");
  header.core_name = cursor.text("core file name");

  if (header.version == kFileVersion || cursor.next_is(kFreeStringsMarker)) {
    header.free_strings_offset = cursor.at();
    cursor.exactly(kFreeStringsMarker, "free strings marker");
    const std::uint32_t count = cursor.word("number of free strings");
    for (std::uint32_t i = 0; i < count && !cursor.failure(); ++i) header.free_strings.push_back(cursor.text("free string"));
  }

  const std::size_t size = run_parameter_words(header.version);
  cursor.exactly(kRunParametersMarker, "run parameters marker");
  cursor.exactly(static_cast<std::uint32_t>(size), "run parameters size in words");
  header.run.run_number = cursor.word("run number");
  header.run.max_events = cursor.word("largest number of events");
  header.run.recording_enabled = cursor.word("recording enabled");
  header.run.trigger_type = cursor.word("trigger type");
  for (std::size_t i = 0; i + 8 < size; ++i) header.run.detector_mask[i] = cursor.word("detector mask");
  header.run.beam_type = cursor.word("beam type");
  header.run.beam_energy = cursor.word("beam energy");
  if (cursor.failure()) return std::unexpected(*cursor.failure());
  header.size_bytes = cursor.at();
  return header;
}

std::vector<std::byte> encode_file_header(const EventFileHeader& header) {
  std::vector<std::byte> out;
  append_words(out, {kFileStartMarker, kStartWords, kFileVersion, header.file_number, header.opened.date, header.opened.time,
                     header.max_blocks, header.max_mib});
  append_word(out, kFileNamesMarker);
  append_text(out, header.application);
  append_text(out, header.core_name);
  append_words(out, {kFreeStringsMarker, static_cast<std::uint32_t>(header.free_strings.size())});
  for (const std::string& text : header.free_strings) append_text(out, text);
  const RunParameters& run = header.run;
  append_words(out, {kRunParametersMarker, static_cast<std::uint32_t>(run_parameter_words(kFileVersion)), run.run_number,
                     run.max_events, run.recording_enabled, run.trigger_type, run.detector_mask[0], run.detector_mask[1],
                     run.detector_mask[2], run.detector_mask[3], run.beam_type, run.beam_energy});
  return out;
}

Decoded<Separator> decode_separator(std::span<const std::byte> bytes) {
  if (bytes.size() < kSeparatorBytes) return decode_error(truncated, 0, "separator", bytes.size(), kSeparatorBytes);
  const WordView words(bytes);
  if (words[0] != kSeparatorMarker) return decode_error(wrong_value, 0, "separator marker", words[0], kSeparatorMarker);
  if (words[1] != 4) return decode_error(wrong_value, 4, "separator size in words", words[1], 4);
  const std::uint64_t left = bytes.size() - kSeparatorBytes;
  if (words[3] > left) return decode_error(too_large, 12, "size of the data block in bytes", words[3], left);
  return Separator{words[2], words[3]};
}

std::array<std::byte, kSeparatorBytes> encode_separator(const Separator& separator) {
  const std::uint32_t words[] = {kSeparatorMarker, 4, separator.block_number, separator.block_bytes};
  std::array<std::byte, kSeparatorBytes> out;
  std::memcpy(out.data(), words, sizeof words);
  return out;
}

Decoded<FileEnd> decode_file_end(std::span<const std::byte> bytes) {
  if (bytes.size() < kFileEndBytes) return decode_error(truncated, 0, "end record", bytes.size(), kFileEndBytes);
  const WordView words(bytes);
  if (words[0] != kFileEndMarker) return decode_error(wrong_value, 0, "end record marker", words[0], kFileEndMarker);
  if (words[1] != kEndWords) return decode_error(wrong_value, 4, "end record size in words", words[1], kEndWords);
  if (words[9] != kFileEndLastWord) return decode_error(wrong_value, 36, "last word", words[9], kFileEndLastWord);
  return FileEnd{.closed = {words[2], words[3]},
                 .blocks_in_file = words[4],
                 .mib_in_file = words[5],
                 .blocks_in_sequence = words[6],
                 .mib_in_sequence = words[7],
                 .last_file = words[8]};
}

std::array<std::byte, kFileEndBytes> encode_file_end(const FileEnd& end) {
  const std::uint32_t words[kEndWords] = {kFileEndMarker,     kEndWords,       end.closed.date,        end.closed.time,
                                          end.blocks_in_file, end.mib_in_file, end.blocks_in_sequence, end.mib_in_sequence,
                                          end.last_file,      kFileEndLastWord};
  std::array<std::byte, kFileEndBytes> out;
  std::memcpy(out.data(), words, sizeof words);
  return out;
}

}  // namespace rodeo::formats
