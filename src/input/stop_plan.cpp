#include "input/stop_plan.h"

#include <algorithm>
#include <vector>

#include "formats/block_decoder.h"
#include "formats/ttc_packet.h"

namespace rodeo::input {
namespace {

constexpr std::size_t kReach = std::size_t{16} << 20;  // one turn over all E-links of a card takes two megabytes
constexpr std::size_t kBlocksPerStep = 16;

/// Reads through the recording and stores the last id of each link.
class Walk {
 public:
  Walk(const Recording& recording, std::size_t from)
      : recording_(recording),
        elinks_(elinks_of(recording)),
        decoder_({.format = recording.format(), .max_chunk_bytes = recording.max_chunk_bytes()}, elinks_),
        buffer_(decoder_.capacity_for(kBlocksPerStep)),
        at_(from),
        last_(elinks_.size()) {}

  std::size_t at() const { return at_; }
  const std::vector<std::optional<std::uint32_t>>& last() const { return last_; }

  void to(std::size_t end) {
    while (at_ < end) {
      buffer_.clear();
      const std::size_t most = std::min(kBlocksPerStep * recording_.format().block_bytes, end - at_);
      const std::size_t taken = decoder_.decode(recording_.blocks().subspan(at_, most), buffer_);
      if (taken == 0) return;
      at_ += taken;
      for (const ChunkRun& run : buffer_.runs()) {
        const bool list = recording_.trigger_elink() && run.link + 1U == elinks_.size();
        const auto id = recorded_id(recording_, list, run.chunk(run.count - 1));
        if (id) last_[run.link] = id;
      }
    }
  }

 private:
  static std::vector<std::uint16_t> elinks_of(const Recording& recording) {
    std::vector<std::uint16_t> elinks(recording.elinks().begin(), recording.elinks().end());
    if (recording.trigger_elink()) elinks.push_back(*recording.trigger_elink());
    return elinks;
  }

  const Recording& recording_;
  const std::vector<std::uint16_t> elinks_;
  formats::BlockDecoder decoder_;
  formats::DecodeBuffer buffer_;
  std::size_t at_;
  std::vector<std::optional<std::uint32_t>> last_;
};

/// The largest id of the data. An id far above most others is a flipped bit, and is ignored.
std::optional<std::uint32_t> foremost(const Recording& recording, std::span<const std::optional<std::uint32_t>> last) {
  std::optional<std::uint32_t> reference;
  std::vector<std::pair<std::int64_t, std::uint32_t>> ids;
  for (const auto& id : last) {
    if (!id) continue;
    const auto distance = recording.ids().distance(reference.value_or(*id), *id);
    if (!distance) continue;
    if (!reference) reference = id;
    ids.emplace_back(*distance, *id);
  }
  if (ids.empty()) return std::nullopt;
  std::sort(ids.begin(), ids.end());
  const std::int64_t middle = ids[ids.size() / 2].first;
  while (ids.back().first > middle + RecordedIds::kLargestStep) ids.pop_back();
  return ids.back().second;
}

}  // namespace

StopPlan plan_stop(const Recording& recording, std::uint64_t reached) {
  const std::size_t size = recording.blocks().size();
  const std::uint64_t pass = reached / size * size;
  const auto at = static_cast<std::size_t>(reached - pass);
  if (at == 0) return {.begin = pass, .end_at = reached, .last_id = std::nullopt};
  const std::size_t block = recording.format().block_bytes;
  Walk walk(recording, at > kReach ? (at - kReach) / block * block : 0);
  walk.to(at);
  const auto before = walk.last();
  const auto last_id = foremost(recording, std::span(before).first(recording.elinks().size()));
  if (!last_id) return {.begin = pass, .end_at = reached, .last_id = std::nullopt};
  const auto all_there = [&] {
    for (std::size_t link = 0; link < before.size(); ++link) {
      if (!before[link]) continue;
      const auto distance = recording.ids().distance(*last_id, *walk.last()[link]);
      if (distance && *distance < 0) return false;
    }
    return true;
  };
  const std::size_t end = std::min(size, at + kReach);
  while (!all_there() && walk.at() < end) {
    const std::size_t before_step = walk.at();
    walk.to(std::min(end, walk.at() + kBlocksPerStep * block));
    if (walk.at() == before_step) break;
  }
  return {.begin = pass, .end_at = pass + walk.at(), .last_id = last_id};
}

std::optional<std::uint32_t> recorded_id(const Recording& recording, bool trigger_list, std::span<const std::byte> chunk) {
  const L1IdField& field = recording.ids().field();
  if (trigger_list) {
    const auto packet = formats::TtcPacket::read(chunk);
    return packet ? std::optional(packet->l1id.value & field.mask()) : std::nullopt;
  }
  return field.in(chunk) ? std::optional(field.read(chunk)) : std::nullopt;
}

}  // namespace rodeo::input
