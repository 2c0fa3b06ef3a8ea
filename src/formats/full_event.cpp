#include "formats/full_event.h"

#include <algorithm>

#include "base/error.h"
#include "formats/checksum.h"
#include "formats/zlib_stream.h"

namespace rodeo::formats {

using enum DecodeFault;

namespace {

// Reads the header words in order, never beyond the header.
class HeaderCursor {
 public:
  HeaderCursor(WordView header, std::size_t at) : header_(header), at_(at) {}

  std::uint32_t word() { return header_[at_++]; }
  std::uint64_t double_word() {
    const std::uint64_t low = word();
    return low | std::uint64_t{word()} << 32;
  }
  std::size_t left() const { return header_.size() - at_; }
  std::size_t at() const { return at_; }

  // A counted list of words; `after` words must remain behind it.
  Decoded<WordView> list(const char* field, std::size_t after) {
    const std::uint64_t count = word();
    const std::size_t fits = left() < after ? 0 : left() - after;
    if (count > fits) return word_error(too_large, at_ - 1, field, count, fits);
    const WordView list = header_.sub(at_, count);
    at_ += count;
    return list;
  }

 private:
  WordView header_;
  std::size_t at_;
};

Decoded<void> decode_lists(HeaderCursor& cursor, FullEventView& event) {
  struct List {
    WordView FullEventView::* member;
    const char* field;
  };
  constexpr List kLists[] = {{&FullEventView::l1_info, "number of L1 info words"},
                             {&FullEventView::l2_info, "number of L2 info words"},
                             {&FullEventView::hlt_info, "number of HLT info words"},
                             {&FullEventView::stream_tags, "number of stream tag words"}};
  std::size_t counts_after = std::size(kLists);
  for (const List& list : kLists) {
    const WordView words = RODEO_TRY(cursor.list(list.field, --counts_after));
    event.*list.member = words;
  }
  return {};
}

// `words`: the event, or its front; `most`: the highest size of the event in words.
Decoded<FullEventView> decode_header(WordView words, std::size_t most) {
  if (words.size() < kGenericHeaderWords) {
    return word_error(truncated, 0, "event header", words.size() * kWordBytes, kGenericHeaderWords * kWordBytes);
  }
  if (words[0] != kFullEventMarker) return word_error(wrong_value, 0, "event marker", words[0], kFullEventMarker);
  const std::uint32_t major = words[3] >> 16;
  if (major != kEventVersion5 && major != kEventVersion4) return word_error(unknown, 3, "event version", words[3]);
  const std::size_t specific = major == kEventVersion5 ? kEventSpecificWords5 : kEventSpecificWords4;
  const std::uint64_t total = words[1];
  const std::uint64_t header = words[2];
  const std::uint64_t status = words[5];
  if (total > most) return word_error(too_large, 1, "event size in words", total, most);
  if (header > total) return word_error(too_large, 2, "event header size in words", header, total);
  const std::uint64_t fixed = kGenericHeaderWords + specific;
  if (header < fixed) return word_error(too_small, 2, "event header size in words", header, fixed);
  if (header > words.size()) return word_error(truncated, 2, "event header", words.size() * kWordBytes, header * kWordBytes);
  if (status > header - fixed) return word_error(too_large, 5, "number of event status words", status, header - fixed);

  FullEventView event;
  event.words = words.sub(0, std::min<std::size_t>(total, words.size()));
  event.version = words[3];
  event.header_words = header;
  event.source_id = {words[4]};
  event.status = words.sub(6, status);
  HeaderCursor cursor(words.sub(0, header), 6 + status);
  const std::uint32_t checksum_type = cursor.word();
  if (checksum_type > 2) return word_error(unknown, 6 + status, "event checksum type", checksum_type);
  event.checksum_type = static_cast<ChecksumType>(checksum_type);
  event.bc_time_s = cursor.word();
  event.bc_time_ns = cursor.word();
  event.global_id = major == kEventVersion5 ? cursor.double_word() : cursor.word();
  event.run_type = cursor.word();
  event.run_number = cursor.word();
  event.lumi_block = cursor.word();
  event.l1id = {cursor.word()};
  event.bcid = cursor.word();
  event.trigger_type = cursor.word();
  std::uint32_t uncompressed = 0;
  if (major == kEventVersion5) {
    const std::uint32_t compression = cursor.word();
    if (compression > 1) return word_error(unknown, cursor.at() - 1, "event compression type", compression);
    event.compression = static_cast<Compression>(compression);
    uncompressed = cursor.word();
  }
  RODEO_TRY(decode_lists(cursor, event));
  if (cursor.left() != 0) return word_error(wrong_value, 2, "event header size in words", header, header - cursor.left());

  const std::uint64_t trailer = checksum_type == 0 ? 0 : 1;
  if (total < header + trailer) return word_error(too_small, 1, "event size in words", total, header + trailer);
  event.uncompressed_words = uncompressed;
  return event;
}

}  // namespace

Decoded<FullEventView> decode_event_header(std::span<const std::byte> front, std::size_t whole_bytes) {
  return decode_header(WordView(front), whole_bytes / kWordBytes);
}

Decoded<FullEventView> decode_full_event(std::span<const std::byte> bytes) {
  const WordView words(bytes);
  Decoded<FullEventView> event = decode_header(words, words.size());
  if (!event) return event;
  const std::size_t total = event->words.size();
  const std::size_t trailer = event->checksum_type == ChecksumType::none ? 0 : 1;
  event->checksum = trailer == 0 ? 0 : words[total - 1];
  event->payload = words.sub(event->header_words, total - event->header_words - trailer);
  // Readers use the field for compressed events only; other events may contain any value.
  if (event->compression == Compression::none) event->uncompressed_words = event->payload.size();
  return event;
}

bool FullEventView::checksum_holds() const {
  return checksum_type != ChecksumType::adler32 || adler32(payload.bytes()) == checksum;
}

Decoded<WordView> FullEventView::robs(std::vector<std::byte>& buffer) const {
  if (compression == Compression::none) return payload;
  const auto failed = [&](DecodeFault fault, std::uint64_t found, std::uint64_t expected) {
    return word_error(fault, header_words, "compressed event payload", found, expected);
  };
  // zlib compresses to a thousandth at most: a larger claimed size is refused before memory is allocated.
  const std::uint64_t size = uncompressed_words * kWordBytes;
  if (size > payload.bytes().size() * kZlibLargestRatio) {
    return failed(too_large, size, payload.bytes().size() * kZlibLargestRatio);
  }
  if (buffer.size() <= size) buffer.resize(size + 1);  // zlib needs an address even if there are no bytes
  const ZlibResult result = zlib_decompress(payload.bytes(), std::span(buffer).first(size));
  if (!result.complete) return failed(damaged, 0, 0);
  if (result.written != size) return failed(wrong_value, result.written, size);
  if (padded_to_word(result.consumed) != payload.bytes().size()) {
    return failed(wrong_value, result.consumed, payload.bytes().size());
  }
  for (std::size_t i = result.consumed; i < payload.bytes().size(); ++i) {
    const auto padding = static_cast<std::uint64_t>(payload.bytes()[i]);
    if (padding != 0) return failed(wrong_value, padding, 0);
  }
  return WordView(std::span(buffer).first(size));
}

}  // namespace rodeo::formats
