#include "formats/event_record.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

#include "formats/words.h"

namespace rodeo::formats {

using enum DecodeFault;

namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

constexpr std::size_t kFixedBytes = 16;  // version, streams, flags, id
constexpr std::size_t kStreamBytes = 4;  // lengths of both texts, flags, reserved
constexpr std::uint32_t kAssignedAgain = 1;
constexpr std::uint8_t kObeysLumiBlock = 1;
constexpr std::size_t kHaveFixedBytes = 4;
constexpr std::size_t kHaveStreamBytes = 2;  // lengths of both texts

template <typename T>
T load(std::span<const std::byte> bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

template <typename T>
void add(std::vector<std::byte>& to, T value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

const char* record_status_name(std::uint16_t status) {
  switch (static_cast<RecordStatus>(status)) {
    case RecordStatus::recorded: return "recorded";
    case RecordStatus::had_already: return "had_already";
    case RecordStatus::had_already_debug: return "had_already_debug";
    case RecordStatus::malformed: return "malformed";
    case RecordStatus::other_run: return "other_run";
    case RecordStatus::not_ready: return "not_ready";
    case RecordStatus::disk_full: return "disk_full";
    case RecordStatus::write_failed: return "write_failed";
    case RecordStatus::unknown_request: return "unknown_request";
    case RecordStatus::taken_over: return "taken_over";
  }
  return "unknown";
}

bool good_stream_text(std::string_view text, std::size_t most) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= most && std::ranges::all_of(text, good);
}

void append_record_head(std::vector<std::byte>& to, const RecordHead& head) {
  assert(!head.streams.empty() && head.streams.size() <= kMostRecordStreams);
  add(to, kEventRecordVersion);
  add(to, static_cast<std::uint16_t>(head.streams.size()));
  add(to, head.assigned_again ? kAssignedAgain : std::uint32_t{0});
  add(to, head.global_id);
  for (const RecordStream& stream : head.streams) {
    assert(good_stream_text(stream.type, kMostStreamType) && good_stream_text(stream.name, kMostStreamName));
    add(to, static_cast<std::uint8_t>(stream.type.size()));
    add(to, static_cast<std::uint8_t>(stream.name.size()));
    add(to, stream.obeys_lumi_block ? kObeysLumiBlock : std::uint8_t{0});
    add(to, std::uint8_t{0});
    append_bytes(to, std::as_bytes(std::span(stream.type)));
    append_bytes(to, std::as_bytes(std::span(stream.name)));
    to.resize(padded_to_word(to.size()));
  }
}

Decoded<TakenRecordHead> decode_record_head(std::span<const std::byte> bytes) {
  if (bytes.size() < kFixedBytes) return decode_error(truncated, 0, "record", bytes.size(), kFixedBytes);
  const auto version = load<std::uint16_t>(bytes, 0);
  if (version != kEventRecordVersion) return decode_error(unknown, 0, "version", version, kEventRecordVersion);
  const auto streams = load<std::uint16_t>(bytes, 2);
  if (streams == 0) return decode_error(too_small, 2, "number of streams", streams, 1);
  if (streams > kMostRecordStreams) return decode_error(too_large, 2, "number of streams", streams, kMostRecordStreams);
  const auto of_record = load<std::uint32_t>(bytes, 4);
  if ((of_record & ~kAssignedAgain) != 0) return decode_error(unknown, 4, "flags", of_record, kAssignedAgain);
  TakenRecordHead out;
  out.head.assigned_again = (of_record & kAssignedAgain) != 0;
  out.head.global_id = load<std::uint64_t>(bytes, 8);
  std::size_t at = kFixedBytes;
  for (std::uint16_t i = 0; i < streams; ++i) {
    if (bytes.size() - at < kStreamBytes) return decode_error(truncated, at, "stream", bytes.size() - at, kStreamBytes);
    const auto type = load<std::uint8_t>(bytes, at);
    const auto name = load<std::uint8_t>(bytes, at + 1);
    const auto flags = load<std::uint8_t>(bytes, at + 2);
    if ((flags & ~kObeysLumiBlock) != 0) return decode_error(unknown, at + 2, "stream flags", flags, kObeysLumiBlock);
    if (const auto reserved = load<std::uint8_t>(bytes, at + 3); reserved != 0)
      return decode_error(wrong_value, at + 3, "reserved", reserved);
    const std::size_t texts = padded_to_word(std::size_t{type} + name);
    if (bytes.size() - at - kStreamBytes < texts)
      return decode_error(truncated, at, "stream", bytes.size() - at, kStreamBytes + texts);
    const auto* text = reinterpret_cast<const char*>(bytes.data() + at + kStreamBytes);
    RecordStream stream{
        .type = {text, type}, .name = {text + type, name}, .obeys_lumi_block = (flags & kObeysLumiBlock) != 0};
    if (!good_stream_text(stream.type, kMostStreamType))
      return decode_error(wrong_value, at + kStreamBytes, "stream type", type);
    if (!good_stream_text(stream.name, kMostStreamName))
      return decode_error(wrong_value, at + kStreamBytes + type, "stream name", name);
    for (std::size_t pad = std::size_t{type} + name; pad < texts; ++pad) {
      if (text[pad] != 0)
        return decode_error(wrong_value, at + kStreamBytes + pad, "padding", static_cast<std::uint8_t>(text[pad]));
    }
    const auto same = [&](const RecordStream& other) { return other.type == stream.type && other.name == stream.name; };
    if (std::ranges::any_of(out.head.streams, same)) return decode_error(wrong_value, at, "stream that occurs twice", i);
    out.head.streams.push_back(std::move(stream));
    at += kStreamBytes + texts;
  }
  out.bytes = at;
  return out;
}

void append_have(std::vector<std::byte>& to, std::span<const std::uint64_t> ids) {
  assert(ids.size() <= kMostHaveIds);
  add(to, kHaveVersion);
  add(to, static_cast<std::uint16_t>(ids.size()));
  append_bytes(to, std::as_bytes(ids));
}

Decoded<std::vector<std::uint64_t>> decode_have(std::span<const std::byte> bytes) {
  if (bytes.size() < kHaveFixedBytes) return decode_error(truncated, 0, "request", bytes.size(), kHaveFixedBytes);
  const auto version = load<std::uint16_t>(bytes, 0);
  if (version != kHaveVersion) return decode_error(unknown, 0, "version", version, kHaveVersion);
  const auto count = load<std::uint16_t>(bytes, 2);
  if (count > kMostHaveIds) return decode_error(too_large, 2, "number of ids", count, kMostHaveIds);
  const std::size_t expected = kHaveFixedBytes + std::size_t{count} * sizeof(std::uint64_t);
  if (bytes.size() != expected) return decode_error(wrong_value, 0, "size", bytes.size(), expected);
  std::vector<std::uint64_t> ids(count);
  if (count > 0) std::memcpy(ids.data(), bytes.data() + kHaveFixedBytes, count * sizeof(std::uint64_t));
  return ids;
}

void append_have_answer(std::vector<std::byte>& to, const HaveAnswer& answer) {
  assert(answer.streams.size() <= kMostHaveStreams);
  add(to, kHaveVersion);
  add(to, static_cast<std::uint16_t>(answer.streams.size()));
  for (const HaveAnswer::Stream& stream : answer.streams) {
    add(to, static_cast<std::uint8_t>(stream.type.size()));
    add(to, static_cast<std::uint8_t>(stream.name.size()));
    append_bytes(to, std::as_bytes(std::span(stream.type)));
    append_bytes(to, std::as_bytes(std::span(stream.name)));
  }
  append_bytes(to, std::as_bytes(std::span(answer.of)));
}

Decoded<HaveAnswer> decode_have_answer(std::span<const std::byte> bytes, std::size_t ids) {
  if (bytes.size() < kHaveFixedBytes) return decode_error(truncated, 0, "answer", bytes.size(), kHaveFixedBytes);
  const auto version = load<std::uint16_t>(bytes, 0);
  if (version != kHaveVersion) return decode_error(unknown, 0, "version", version, kHaveVersion);
  const auto count = load<std::uint16_t>(bytes, 2);
  if (count > kMostHaveStreams) return decode_error(too_large, 2, "number of streams", count, kMostHaveStreams);
  HaveAnswer answer;
  std::size_t at = kHaveFixedBytes;
  for (std::size_t i = 0; i < count; ++i) {
    if (bytes.size() - at < kHaveStreamBytes)
      return decode_error(truncated, at, "stream", bytes.size() - at, kHaveStreamBytes);
    const auto type = load<std::uint8_t>(bytes, at);
    const auto name = load<std::uint8_t>(bytes, at + 1);
    at += kHaveStreamBytes;
    if (bytes.size() - at < std::size_t{type} + name)
      return decode_error(truncated, at, "names of a stream", bytes.size() - at, std::size_t{type} + name);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + at, std::size_t{type} + name);
    if (!good_stream_text(text.substr(0, type), kMostStreamType) || !good_stream_text(text.substr(type), kMostStreamName))
      return decode_error(wrong_value, at, "names of a stream", i);
    answer.streams.push_back({std::string(text.substr(0, type)), std::string(text.substr(type))});
    at += text.size();
  }
  if (bytes.size() - at != ids) return decode_error(wrong_value, at, "number of ids", bytes.size() - at, ids);
  for (std::size_t i = 0; i < ids; ++i) {
    const auto of = load<std::uint8_t>(bytes, at + i);
    if (of > count) return decode_error(wrong_value, at + i, "stream of an id", of, count);
    answer.of.push_back(of);
  }
  return answer;
}

}  // namespace rodeo::formats
