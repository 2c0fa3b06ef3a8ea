#include "formats/rob_walk.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "formats/event_format.h"
#include "formats/rob.h"
#include "formats/words.h"

namespace rodeo::formats {

using enum DecodeFault;

namespace {

// More status words than any writer uses; a higher number is refused.
constexpr std::size_t kMostStatusWords = 1024;

// True if there is a ROD at `offset`, by the rules of decode_rod().
bool read_rod(const Pieces& pieces, std::size_t offset, std::size_t words, RodHeader& header) {
  if (words < kRodHeaderWords + kRodTrailerWords) return false;
  std::array<std::uint32_t, kRodHeaderWords> head;
  std::array<std::uint32_t, kRodTrailerWords> tail;
  pieces.copy(offset, std::as_writable_bytes(std::span(head)));
  pieces.copy(offset + (words - kRodTrailerWords) * kWordBytes, std::as_writable_bytes(std::span(tail)));
  if (head[0] != kRodMarker || head[1] != kRodHeaderWords || head[2] >> 16 != kRodVersion) return false;
  const std::uint64_t body = words - kRodHeaderWords - kRodTrailerWords;
  if (std::uint64_t{tail[0]} + tail[1] != body || tail[2] > 1) return false;
  header = {.minor_version = static_cast<std::uint16_t>(head[2]),
            .source_id = {head[3]},
            .run_number = head[4],
            .l1id = {head[5]},
            .bcid = head[6],
            .trigger_type = head[7],
            .detector_event_type = head[8]};
  return true;
}

}  // namespace

Pieces::Pieces(std::span<const std::span<const std::byte>> pieces) : pieces_(pieces) {
  for (const auto piece : pieces) bytes_ += piece.size();
}

void Pieces::copy(std::size_t offset, std::span<std::byte> to) const {
  for (const auto piece : pieces_) {
    if (to.empty()) return;
    if (offset >= piece.size()) {
      offset -= piece.size();
      continue;
    }
    const std::size_t n = std::min(piece.size() - offset, to.size());
    std::memcpy(to.data(), piece.data() + offset, n);
    to = to.subspan(n);
    offset = 0;
  }
}

void Pieces::append(std::size_t offset, std::size_t bytes, std::vector<std::span<const std::byte>>& to) const {
  for (const auto piece : pieces_) {
    if (bytes == 0) return;
    if (offset >= piece.size()) {
      offset -= piece.size();
      continue;
    }
    const auto some = piece.subspan(offset, std::min(piece.size() - offset, bytes));
    // Adjacent memory is joined to one piece.
    if (!to.empty() && to.back().data() + to.back().size() == some.data()) {
      to.back() = {to.back().data(), to.back().size() + some.size()};
    } else {
      to.push_back(some);
    }
    bytes -= some.size();
    offset = 0;
  }
}

Decoded<void> walk_robs(const Pieces& pieces, std::vector<FoundRob>& robs) {
  std::vector<std::byte> header;
  for (std::size_t at = 0; at < pieces.bytes();) {
    const std::size_t left = (pieces.bytes() - at) / kWordBytes;
    if (left < kGenericHeaderWords)
      return decode_error(truncated, at, "ROB header", left * kWordBytes, kGenericHeaderWords * kWordBytes);
    std::array<std::uint32_t, kGenericHeaderWords> front;
    pieces.copy(at, std::as_writable_bytes(std::span(front)));
    const std::size_t words = front[1];
    if (front[0] != kRobMarker) return decode_error(wrong_value, at, "ROB marker", front[0], kRobMarker);
    if (words > left) return decode_error(too_large, at + kWordBytes, "ROB size in words", words, left);
    if (words < kGenericHeaderWords)
      return decode_error(too_small, at + kWordBytes, "ROB size in words", words, kGenericHeaderWords);
    const std::size_t status_words = front[5];
    const std::size_t most = std::min(words - kGenericHeaderWords, kMostStatusWords);
    if (status_words > most)
      return decode_error(too_large, at + 5 * kWordBytes, "number of ROB status words", status_words, most);
    const std::size_t header_words = kGenericHeaderWords + status_words;
    if (front[2] != header_words)
      return decode_error(wrong_value, at + 2 * kWordBytes, "ROB header size in words", front[2], header_words);
    const std::uint32_t major = front[3] >> 16;
    if (major != kEventVersion5 && major != kEventVersion4)
      return decode_error(unknown, at + 3 * kWordBytes, "ROB version", front[3]);
    header.resize(header_words * kWordBytes);
    pieces.copy(at, header);
    const std::uint32_t checksum = load_word(header.data() + (header_words - 1) * kWordBytes);
    if (checksum > 2) return decode_error(unknown, at + (header_words - 1) * kWordBytes, "ROB checksum type", checksum);
    const std::size_t trailer = checksum == 0 ? 0 : 1;
    if (words < header_words + trailer)
      return decode_error(too_small, at + kWordBytes, "ROB size in words", words, header_words + trailer);
    FoundRob rob{
        .source_id = {front[4]}, .offset = at, .bytes = words * kWordBytes, .status = status_words > 0 ? front[6] : 0};
    rob.sound = read_rod(pieces, at + header_words * kWordBytes, words - header_words - trailer, rob.rod) &&
                rob.rod.source_id == rob.source_id;
    robs.push_back(rob);
    at += words * kWordBytes;
  }
  return {};
}

}  // namespace rodeo::formats
