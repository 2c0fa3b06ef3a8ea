#include "storage/event_file_encoder.h"

#include <fmt/format.h>

#include <charconv>
#include <random>
#include <string_view>

namespace rodeo::storage {

using namespace formats;

std::string core_file_name(const EventFileSettings& settings) {
  if (!settings.simple_name.empty()) return settings.simple_name;
  return fmt::format("{}.{:08}.{}_{}.daq.RAW._lb{:04}._{}", settings.project, settings.run.run_number, settings.stream_type,
                     settings.stream_name, settings.lumi_block, settings.application);
}

std::optional<std::uint32_t> run_number_in(std::string_view file_name, std::string_view project) {
  if (!file_name.starts_with(project) || file_name.find(".daq.RAW._lb") == std::string_view::npos) return std::nullopt;
  file_name.remove_prefix(project.size());
  if (!file_name.starts_with('.')) return std::nullopt;
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(file_name.data() + 1, file_name.data() + file_name.size(), number);
  const bool whole = error == std::errc{} && end != file_name.data() + file_name.size() && *end == '.';
  return whole ? std::optional(number) : std::nullopt;
}

std::string make_guid() {
  std::random_device random;
  std::uint32_t words[4];
  for (std::uint32_t& word : words) word = random();
  words[1] = (words[1] & 0xffff0fff) | 0x00004000;  // version 4: random
  words[2] = (words[2] & 0x3fffffff) | 0x80000000;
  return fmt::format("{:08X}-{:04X}-{:04X}-{:04X}-{:04X}{:08X}", words[0], words[1] >> 16, words[1] & 0xffff, words[2] >> 16,
                     words[2] & 0xffff, words[3]);
}

static constexpr std::uint64_t kMiB = 1 << 20;

EventFileEncoder::EventFileEncoder(EventFileSettings settings, std::uint32_t first_file_number)
    : settings_(std::move(settings)), core_name_(core_file_name(settings_)), file_number_(first_file_number - 1) {}

std::string EventFileEncoder::base_name() const { return fmt::format("{}._{:04}", core_name_, file_number_); }

std::span<const std::byte> EventFileEncoder::begin_file(std::time_t now, const std::string& guid) {
  ++file_number_;
  EventFileHeader header;
  header.file_number = file_number_;
  header.opened = FileTime::of(now);
  header.max_blocks = settings_.max_blocks;
  header.max_mib = static_cast<std::uint32_t>((settings_.max_bytes + kMiB - 1) / kMiB);
  header.application = settings_.application;
  header.core_name = core_name_;
  header.run = settings_.run;
  header.free_strings = {"GUID=" + guid, open_crc_string(),
                         fmt::format("{}={}", kFormatKey, settings_.foreign_events ? 0 : 1)};
  if (settings_.provable) header.free_strings.push_back(settings_.provable->text());
  header.free_strings.insert(header.free_strings.end(), settings_.free_strings.begin(), settings_.free_strings.end());
  header.free_strings.push_back(fmt::format("Stream={}_{}", settings_.stream_type, settings_.stream_name));
  header.free_strings.push_back("Project=" + settings_.project);
  header.free_strings.push_back(fmt::format("LumiBlock={}", settings_.lumi_block));
  header_ = encode_file_header(header);

  const std::string_view text(reinterpret_cast<const char*>(header_.data()), header_.size());
  crc_offset_ = text.find(open_crc_string()) + kCrcKey.size() + 1;
  file_bytes_ = header_.size();
  block_bytes_in_file_ = 0;
  blocks_in_file_ = 0;
  return header_;
}

bool EventFileEncoder::must_roll_over(std::size_t block_bytes) const {
  if (blocks_in_file_ == 0) return false;
  if (settings_.max_blocks > 0 && blocks_in_file_ >= settings_.max_blocks) return true;
  return settings_.max_bytes > 0 && file_bytes_ + kSeparatorBytes + block_bytes + kFileEndBytes > settings_.max_bytes;
}

std::array<std::byte, kSeparatorBytes> EventFileEncoder::separator(std::uint32_t block_bytes) {
  ++blocks_in_file_;
  ++blocks_in_sequence_;
  block_bytes_in_file_ += block_bytes;
  block_bytes_in_sequence_ += block_bytes;
  file_bytes_ += kSeparatorBytes + block_bytes;
  return encode_separator({.block_number = blocks_in_sequence_, .block_bytes = block_bytes});
}

void EventFileEncoder::extend_block(std::size_t bytes) {
  block_bytes_in_file_ += bytes;
  block_bytes_in_sequence_ += bytes;
  file_bytes_ += bytes;
}

std::array<std::byte, kFileEndBytes> EventFileEncoder::end_file(std::time_t now, bool last_of_sequence) {
  file_bytes_ += kFileEndBytes;
  return encode_file_end({.closed = FileTime::of(now),
                          .blocks_in_file = blocks_in_file_,
                          .mib_in_file = rounded_mib(block_bytes_in_file_),
                          .blocks_in_sequence = blocks_in_sequence_,
                          .mib_in_sequence = rounded_mib(block_bytes_in_sequence_),
                          .last_file = last_of_sequence ? 1u : 0u});
}

}  // namespace rodeo::storage
