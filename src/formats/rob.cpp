#include "formats/rob.h"

#include "formats/checksum.h"

namespace rodeo::formats {

using enum DecodeFault;

Decoded<RobView> decode_rob(std::span<const std::byte> bytes) {
  const WordView words(bytes);
  if (words.size() < kGenericHeaderWords) {
    return word_error(truncated, 0, "ROB header", bytes.size(), kGenericHeaderWords * kWordBytes);
  }
  if (words[0] != kRobMarker) return word_error(wrong_value, 0, "ROB marker", words[0], kRobMarker);
  const std::uint64_t total = words[1];
  const std::uint64_t header = words[2];
  const std::uint64_t status = words[5];
  if (total > words.size()) return word_error(too_large, 1, "ROB size in words", total, words.size());
  if (total < kGenericHeaderWords) return word_error(too_small, 1, "ROB size in words", total, kGenericHeaderWords);
  const std::uint32_t major = words[3] >> 16;
  if (major != kEventVersion5 && major != kEventVersion4) return word_error(unknown, 3, "ROB version", words[3]);
  if (status > total - kGenericHeaderWords) {
    return word_error(too_large, 5, "number of ROB status words", status, total - kGenericHeaderWords);
  }
  if (header != kGenericHeaderWords + status) {
    return word_error(wrong_value, 2, "ROB header size in words", header, kGenericHeaderWords + status);
  }
  const std::uint32_t checksum_type = words[header - 1];
  if (checksum_type > 2) return word_error(unknown, header - 1, "ROB checksum type", checksum_type);
  const std::uint64_t trailer = checksum_type == 0 ? 0 : 1;
  if (total < header + trailer) return word_error(too_small, 1, "ROB size in words", total, header + trailer);

  RobView rob;
  rob.words = words.sub(0, total);
  rob.version = words[3];
  rob.source_id = {words[4]};
  rob.status = words.sub(6, status);
  rob.checksum_type = static_cast<ChecksumType>(checksum_type);
  rob.checksum = trailer == 0 ? 0 : words[total - 1];
  rob.payload = words.sub(header, total - header - trailer);
  return rob;
}

Decoded<RodView> RobView::rod() const {
  Decoded<RodView> rod = decode_rod(payload.bytes());
  if (!rod) return std::unexpected(rod.error().from(payload_offset_bytes()));
  return rod;
}

bool RobView::checksum_holds() const {
  return checksum_type != ChecksumType::adler32 || adler32(payload.bytes()) == checksum;
}

}  // namespace rodeo::formats
