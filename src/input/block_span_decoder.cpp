#include "input/block_span_decoder.h"

#include <algorithm>
#include <string>

#include "base/counters.h"
#include "formats/block_decoder.h"

namespace rodeo::input {
namespace {

using formats::BlockCounter;

constexpr std::size_t kBlocksPerPage = 64;
constexpr formats::DecodeBuffer::Capacity kPageRoom{
    .runs = 1024, .entries = 1024, .carry_bytes = 64 * 1024};  // besides one block's worst case

class BlockSpanDecoder final : public SpanDecoder {
 public:
  BlockSpanDecoder(const formats::BlockFormat& format, std::uint32_t max_chunk_bytes, std::span<const std::uint16_t> elinks)
      : decoder_({.format = format, .max_chunk_bytes = max_chunk_bytes}, elinks) {}

  formats::DecodeBuffer::Capacity room() const override {
    auto room = decoder_.capacity_for(1);
    room.runs += kPageRoom.runs;
    room.entries += kPageRoom.entries;
    room.carry_bytes += kPageRoom.carry_bytes;
    return room;
  }
  formats::DecodeBuffer::Capacity finish_room() const override { return decoder_.capacity_for(0); }

  std::size_t decode(const CardSpan& span, std::size_t from, formats::DecodeBuffer& out) override {
    const std::size_t block = decoder_.options().format.block_bytes;
    const std::span<const std::byte> rest = span.bytes.subspan(from);
    if (rest.size() < block) {
      partial_block_bytes_.add(rest.size());
      return rest.size();
    }
    return decoder_.decode(rest.first(std::min(rest.size() / block, kBlocksPerPage) * block), out);
  }
  void finish(formats::DecodeBuffer& out) override { decoder_.finish(out); }

  std::vector<NamedCounter> counters() const override {
    std::vector<NamedCounter> all;
    for (std::size_t i = 0; i < formats::kBlockCounters; ++i) {
      const auto counter = static_cast<BlockCounter>(i);
      // Blocks of other links are another worker's business; what else tells of damage is the card's.
      if (formats::is_anomaly(counter))
        all.push_back({std::string(formats::kBlockCounterInfo[i].name), decoder_.counters().read(counter)});
    }
    all.push_back({"partial_block_bytes", partial_block_bytes_.get()});
    return all;
  }

 private:
  formats::BlockDecoder decoder_;
  base::Gauge<std::uint64_t> partial_block_bytes_;
};

}  // namespace

std::unique_ptr<SpanDecoder> make_block_span_decoder(const formats::BlockFormat& format, std::uint32_t max_chunk_bytes,
                                                     std::span<const std::uint16_t> elinks) {
  return std::make_unique<BlockSpanDecoder>(format, max_chunk_bytes, elinks);
}

}  // namespace rodeo::input
