#include "formats/event_merge.h"

#include <algorithm>
#include <utility>

#include "formats/checksum.h"
#include "formats/event_format.h"
#include "formats/rob.h"
#include "formats/stream_tags.h"
#include "formats/zlib_stream.h"
#include "rodeo/fragment.h"

namespace rodeo::formats {
namespace {

bool is_dummy(const EventPiece& piece) {
  return !piece.event.status.empty() && (piece.event.status[0] & fragment_status::kDummy) != 0;
}

// The first piece with chunks: a fragment without chunks may know only the L1 id of its trigger.
const FullEventView& leading(std::span<const EventPiece> pieces) {
  const auto found = std::ranges::find_if_not(pieces, is_dummy);
  return (found == pieces.end() ? pieces.front() : *found).event;
}

bool same_bytes(WordView a, WordView b) { return std::ranges::equal(a.bytes(), b.bytes()); }

// All tags of the pieces, each once.
std::vector<std::uint32_t> joined_tags(std::span<const EventPiece> pieces) {
  const auto same = [&](const EventPiece& piece) {
    return same_bytes(piece.event.stream_tags, pieces.front().event.stream_tags);
  };
  if (std::ranges::all_of(pieces, same)) return pieces.front().event.stream_tags.to_vector();
  std::vector<StreamTag> all;
  for (const EventPiece& piece : pieces) {
    for (StreamTag& tag : decode_stream_tags(stream_tag_text(piece.event.stream_tags))) {
      if (std::ranges::find(all, tag) == all.end()) all.push_back(std::move(tag));
    }
  }
  return encode_stream_tags(all);
}

// The list of the first piece that has one.
WordView first_of(std::span<const EventPiece> pieces, WordView FullEventView::* list) {
  const auto found = std::ranges::find_if(pieces, [&](const EventPiece& piece) { return !(piece.event.*list).empty(); });
  return found == pieces.end() ? WordView{} : found->event.*list;
}

void append_list(std::vector<std::byte>& out, WordView words) {
  append_word(out, static_cast<std::uint32_t>(words.size()));
  append_bytes(out, words.bytes());
}

}  // namespace

std::vector<SourceId> missing_robs(WordView status) {
  std::vector<SourceId> missing;
  if (status.size() < 2 || (status[0] & kRobsMissing) == 0 || status[1] != status.size() - 2) return missing;
  for (std::size_t i = 2; i < status.size(); ++i) missing.push_back({status[i]});
  return missing;
}

MergedPieces EventMerger::merge(std::span<const EventPiece> pieces, bool whole) {
  MergedPieces merged;
  collect(pieces, merged);
  std::set<SourceId> wanted = expected_;
  const FullEventView& first = leading(pieces);
  for (const EventPiece& piece : pieces) {
    // ROBs that an earlier merge lacked may be present now.
    for (const SourceId id : missing_robs(piece.event.status)) wanted.insert(id);
    if (is_dummy(piece)) continue;
    merged.bcid_differs = merged.bcid_differs || piece.event.bcid != first.bcid;
    merged.trigger_type_differs = merged.trigger_type_differs || piece.event.trigger_type != first.trigger_type;
  }
  for (const Rob& rob : robs_) wanted.erase(rob.source_id);
  merged.missing.assign(wanted.begin(), wanted.end());
  const std::vector<std::uint32_t> status = status_words(pieces, merged, whole);
  const bool as_it_is = pieces.size() == 1 + merged.repeated.size() + merged.contradicting.size() &&
                        merged.repeated_robs.empty() && merged.contradicting_robs.empty() &&
                        status == pieces.front().event.status.to_vector();
  if (as_it_is) {
    merged.bytes = pieces.front().event.words.bytes();
    return merged;
  }
  build(pieces, status);
  merged.bytes = bytes_;
  return merged;
}

void EventMerger::collect(std::span<const EventPiece> pieces, MergedPieces& merged) {
  robs_.clear();
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    std::size_t brought = 0;
    std::size_t had = 0;
    const std::size_t contradicted = merged.contradicting_robs.size();
    (void)for_each_rob(pieces[i].robs, [&](const RobView& rob, std::size_t) {
      ++had;
      const auto same = std::ranges::find(robs_, rob.source_id, &Rob::source_id);
      if (same == robs_.end()) {
        robs_.push_back({rob.source_id, rob.words});
        ++brought;
      } else {
        (same_bytes(same->words, rob.words) ? merged.repeated_robs : merged.contradicting_robs).push_back(rob.source_id);
      }
    });
    if (i == 0 || brought > 0 || had == 0) continue;
    (contradicted == merged.contradicting_robs.size() ? merged.repeated : merged.contradicting).push_back(i);
  }
  std::ranges::stable_sort(robs_, {}, &Rob::source_id);
}

std::vector<std::uint32_t> EventMerger::status_words(std::span<const EventPiece> pieces, const MergedPieces& merged,
                                                     bool whole) const {
  std::uint32_t bits = 0;
  for (const EventPiece& piece : pieces) bits |= piece.event.status.empty() ? 0 : piece.event.status[0];
  bits &= ~kRobsMissing;
  if (!merged.missing.empty() || !whole) bits |= kRobsMissing;
  if (merged.bcid_differs || merged.trigger_type_differs) bits |= fragment_status::kBcidMismatch;
  const WordView first = pieces.front().event.status;
  const bool others_words = first.size() > 1 && (first[0] & kRobsMissing) == 0;
  if (merged.missing.empty()) {
    std::vector<std::uint32_t> words = others_words ? first.to_vector() : std::vector<std::uint32_t>(1);
    words[0] = bits;
    return words;
  }
  std::vector<std::uint32_t> words{bits, static_cast<std::uint32_t>(merged.missing.size())};
  for (const SourceId id : merged.missing) words.push_back(id.value);
  return words;
}

void EventMerger::build(std::span<const EventPiece> pieces, const std::vector<std::uint32_t>& status) {
  const FullEventView& first = leading(pieces);
  const auto earliest = std::ranges::min(pieces, {}, [](const EventPiece& piece) {
                          return std::pair(piece.event.bc_time_s, piece.event.bc_time_ns);
                        }).event;
  const std::vector<std::uint32_t> tags = joined_tags(pieces);
  const auto with_checksum = [](const EventPiece& piece) { return piece.event.checksum_type == ChecksumType::adler32; };
  const bool checksum = std::ranges::any_of(pieces, with_checksum);

  std::vector<std::byte> payload;
  for (const Rob& rob : robs_) append_bytes(payload, rob.words.bytes());
  const std::size_t uncompressed_words = payload.size() / kWordBytes;
  if (first.compression == Compression::zlib) {
    payload = zlib_compress(payload, 1);
    payload.resize(padded_to_word(payload.size()));
  }

  bytes_.clear();
  for (const std::uint32_t word : {kFullEventMarker, 0U, 0U, std::uint32_t{kEventVersion5} << 16, first.source_id.value,
                                   static_cast<std::uint32_t>(status.size())})
    append_word(bytes_, word);
  for (const std::uint32_t word : status) append_word(bytes_, word);
  for (const std::uint32_t word :
       {static_cast<std::uint32_t>(checksum ? ChecksumType::adler32 : ChecksumType::none), earliest.bc_time_s,
        earliest.bc_time_ns, static_cast<std::uint32_t>(first.global_id), static_cast<std::uint32_t>(first.global_id >> 32),
        first.run_type, first.run_number, first.lumi_block, first.l1id.value, first.bcid, first.trigger_type,
        static_cast<std::uint32_t>(first.compression), static_cast<std::uint32_t>(uncompressed_words)})
    append_word(bytes_, word);
  append_list(bytes_, first_of(pieces, &FullEventView::l1_info));
  append_list(bytes_, first_of(pieces, &FullEventView::l2_info));
  append_list(bytes_, first_of(pieces, &FullEventView::hlt_info));
  append_list(bytes_, WordView(std::as_bytes(std::span(tags))));
  const std::size_t header_words = bytes_.size() / kWordBytes;
  append_bytes(bytes_, payload);
  if (checksum) append_word(bytes_, adler32(payload));
  store_word(bytes_.data() + event_word::kSize * kWordBytes, static_cast<std::uint32_t>(bytes_.size() / kWordBytes));
  store_word(bytes_.data() + event_word::kHeaderSize * kWordBytes, static_cast<std::uint32_t>(header_words));
}

}  // namespace rodeo::formats
