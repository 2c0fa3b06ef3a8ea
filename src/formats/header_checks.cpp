#include "formats/header_checks.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "formats/checksum.h"
#include "formats/event_format.h"
#include "formats/words.h"

namespace rodeo::formats {

namespace {

constexpr std::size_t kHeadBytes = 3 * kWordBytes;  // marker, size, first block
constexpr std::size_t kTailBytes = kWordBytes;      // count and CRC
constexpr std::size_t kHeaderSizeAt = event_word::kHeaderSize * kWordBytes;

std::uint16_t load_half(const std::byte* at) {
  std::uint16_t half = 0;
  std::memcpy(&half, at, sizeof half);
  return half;
}

void append_half(std::vector<std::byte>& out, std::uint16_t half) { append_bytes(out, std::as_bytes(std::span(&half, 1))); }

}  // namespace

std::uint16_t header_check(std::uint32_t block_number, std::span<const std::span<const std::byte>> pieces) {
  // The word with the header's size may be in any piece, or split over two.
  std::array<std::byte, kHeaderSizeAt + kWordBytes> front{};
  std::size_t there = 0;
  std::size_t all = 0;
  for (const auto& piece : pieces) {
    const std::size_t taken = std::min(piece.size(), front.size() - there);
    if (taken > 0) std::memcpy(front.data() + there, piece.data(), taken);
    there += taken;
    all += piece.size();
  }
  const std::uint64_t said = there == front.size() ? std::uint64_t{load_word(front.data() + kHeaderSizeAt)} * kWordBytes : 0;
  std::size_t left = said >= front.size() && said <= all ? static_cast<std::size_t>(said) : all;
  std::array<std::byte, kWordBytes> number;
  store_word(number.data(), block_number);
  std::uint16_t crc = crc16(number);
  for (const auto& piece : pieces) {
    const auto of_it = piece.first(std::min(piece.size(), left));
    crc = crc16(of_it, crc);
    left -= of_it.size();
  }
  return crc;
}

std::optional<HeaderChecks> HeaderChecks::decode(std::span<const std::byte> record) {
  if (record.size() < HeaderCheckList::record_bytes(1) || load_word(record.data()) != kHeaderChecksMarker)
    return std::nullopt;
  HeaderChecks checks;
  const std::byte* const tail = record.data() + record.size() - kTailBytes;
  checks.count_ = load_half(tail);
  if (checks.count_ < 1 || checks.count_ > kMostHeaderChecks ||
      record.size() != HeaderCheckList::record_bytes(checks.count_) ||
      load_word(record.data() + kWordBytes) * kWordBytes != record.size() ||
      crc16(record.first(record.size() - 2)) != load_half(tail + 2))
    return std::nullopt;
  checks.first_ = load_word(record.data() + 2 * kWordBytes);
  checks.checks_ = record.subspan(kHeadBytes, 2 * checks.count_);
  return checks;
}

std::uint16_t HeaderChecks::operator[](std::size_t i) const { return load_half(checks_.data() + 2 * i); }

std::optional<std::uint16_t> HeaderChecks::of(std::uint32_t block_number) const {
  const std::uint32_t i = block_number - first_;
  return i < count_ ? std::optional((*this)[i]) : std::nullopt;
}

BlockParts split_block(std::span<const std::byte> block) {
  const BlockParts whole{.event = block, .checks = {}};
  if (block.size() < HeaderCheckList::record_bytes(1) + 2 * kWordBytes) return whole;
  if (load_word(block.data()) == kFullEventMarker &&
      load_word(block.data() + kWordBytes) * std::uint64_t{kWordBytes} == block.size())
    return whole;
  const std::size_t count = load_half(block.data() + block.size() - kTailBytes);
  const std::size_t bytes = HeaderCheckList::record_bytes(count);
  if (bytes > block.size() || !HeaderChecks::decode(block.last(bytes))) return whole;
  return {.event = block.first(block.size() - bytes), .checks = block.last(bytes)};
}

std::span<const std::byte> HeaderCheckList::record() {
  record_.clear();
  if (checks_.empty()) return record_;
  const std::size_t bytes = record_bytes(checks_.size());
  append_word(record_, kHeaderChecksMarker);
  append_word(record_, static_cast<std::uint32_t>(bytes / kWordBytes));
  append_word(record_, first_);
  append_bytes(record_, std::as_bytes(std::span(checks_)));
  record_.resize(bytes - kTailBytes);
  append_half(record_, static_cast<std::uint16_t>(checks_.size()));
  append_half(record_, crc16(record_));
  checks_.clear();
  return record_;
}

std::vector<PlacedHeaderChecks> find_header_checks(std::span<const std::byte> file) {
  std::array<std::byte, kWordBytes> marker;
  store_word(marker.data(), kHeaderChecksMarker);
  std::vector<PlacedHeaderChecks> found;
  for (std::size_t at = 0; at < file.size();) {
    const void* const place = ::memmem(file.data() + at, file.size() - at, marker.data(), marker.size());
    if (place == nullptr) break;
    at = static_cast<std::size_t>(static_cast<const std::byte*>(place) - file.data());
    const auto rest = file.subspan(at);
    std::size_t taken = 1;
    if (rest.size() >= 2 * kWordBytes) {
      const std::uint64_t bytes = std::uint64_t{load_word(rest.data() + kWordBytes)} * kWordBytes;
      const auto checks =
          bytes <= rest.size() ? HeaderChecks::decode(rest.first(static_cast<std::size_t>(bytes))) : std::nullopt;
      if (checks) {
        found.push_back({at, *checks});
        taken = static_cast<std::size_t>(bytes);
      }
    }
    at += taken;
  }
  return found;
}

HeaderProof prove_header(std::span<const PlacedHeaderChecks> records, std::uint64_t offset, std::uint32_t block_number,
                         std::span<const std::byte> event) {
  // The check of an event is in the first record behind it: in joined files, block numbers repeat.
  const auto record = std::ranges::upper_bound(records, offset, {}, &PlacedHeaderChecks::offset);
  if (record == records.end()) return HeaderProof::none;
  const auto check = record->checks.of(block_number);
  if (!check) return HeaderProof::none;
  return header_check(block_number, event) == *check ? HeaderProof::holds : HeaderProof::wrong;
}

}  // namespace rodeo::formats
