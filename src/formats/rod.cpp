#include "formats/rod.h"

#include <algorithm>
#include <bit>

namespace rodeo::formats {

using enum DecodeFault;

namespace {

constexpr std::size_t kFrameWords = kRodHeaderWords + kRodTrailerWords;

}  // namespace

Decoded<RodView> decode_rod(std::span<const std::byte> bytes) {
  const WordView words(bytes);
  if (words.size() < kFrameWords) return word_error(truncated, 0, "ROD", bytes.size(), kFrameWords * kWordBytes);
  if (words[0] != kRodMarker) return word_error(wrong_value, 0, "ROD marker", words[0], kRodMarker);
  if (words[1] != kRodHeaderWords) return word_error(wrong_value, 1, "ROD header size", words[1], kRodHeaderWords);
  if (words[2] >> 16 != kRodVersion) return word_error(wrong_value, 2, "ROD version", words[2] >> 16, kRodVersion);

  const std::size_t trailer = words.size() - kRodTrailerWords;
  const std::uint64_t status_words = words[trailer];
  const std::uint64_t data_words = words[trailer + 1];
  const std::uint32_t position = words[trailer + 2];
  const std::uint64_t body_words = words.size() - kFrameWords;
  if (status_words > body_words) {
    return word_error(too_large, trailer, "number of ROD status words", status_words, body_words);
  }
  if (data_words != body_words - status_words) {
    return word_error(wrong_value, trailer + 1, "number of ROD data words", data_words, body_words - status_words);
  }
  if (position > 1) return word_error(unknown, trailer + 2, "ROD status position", position);

  RodView rod;
  rod.words = words;
  rod.header = {.minor_version = static_cast<std::uint16_t>(words[2]),
                .source_id = {words[3]},
                .run_number = words[4],
                .l1id = {words[5]},
                .bcid = words[6],
                .trigger_type = words[7],
                .detector_event_type = words[8]};
  rod.status_position = static_cast<StatusPosition>(position);
  if (rod.status_position == StatusPosition::before_data) {
    rod.status = words.sub(kRodHeaderWords, status_words);
    rod.data = words.sub(kRodHeaderWords + status_words, data_words);
  } else {
    rod.data = words.sub(kRodHeaderWords, data_words);
    rod.status = words.sub(kRodHeaderWords + data_words, status_words);
  }
  return rod;
}

std::uint32_t AbsentLinks::count(WordView bits) {
  std::uint32_t count = 0;
  for (std::size_t i = 0; i < bits.size(); ++i) count += static_cast<std::uint32_t>(std::popcount(bits[i]));
  return count;
}

std::optional<AbsentLinks> absent_links(WordView status) {
  AbsentLinks links;
  if (status.size() < 2) return links;
  links.missing = status[1];
  if (status.size() == 2) return links;
  const std::size_t listed = std::min<std::size_t>(links.missing, kMissingListed);
  if (status.size() < 2 + listed || (status.size() - 2 - listed) % 2 != 0) return std::nullopt;
  const std::size_t words = (status.size() - 2 - listed) / 2;
  links.listed = status.sub(2, listed);
  links.missing_bits = status.sub(2 + listed, words);
  links.removed_bits = status.sub(2 + listed + words, words);
  for (std::size_t i = 0; i < words; ++i) {
    if ((links.missing_bits[i] & links.removed_bits[i]) != 0) return std::nullopt;
  }
  if (words > 0 && AbsentLinks::count(links.missing_bits) != links.missing) return std::nullopt;
  return links;
}

void store_rod_header(std::byte* at, const RodHeader& header) {
  const std::uint32_t words[kRodHeaderWords] = {kRodMarker,
                                                kRodHeaderWords,
                                                std::uint32_t{kRodVersion} << 16 | header.minor_version,
                                                header.source_id.value,
                                                header.run_number,
                                                header.l1id.value,
                                                header.bcid,
                                                header.trigger_type,
                                                header.detector_event_type};
  std::memcpy(at, words, sizeof words);
}

void store_rod_trailer(std::byte* at, std::size_t status_words, std::size_t data_words, StatusPosition position) {
  const std::uint32_t words[kRodTrailerWords] = {static_cast<std::uint32_t>(status_words),
                                                 static_cast<std::uint32_t>(data_words),
                                                 static_cast<std::uint32_t>(position)};
  std::memcpy(at, words, sizeof words);
}

}  // namespace rodeo::formats
