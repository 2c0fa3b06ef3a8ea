#include "input/span_decoder.h"

#include <algorithm>

#include "base/named_counters.h"
#include "formats/block_decoder.h"

namespace rodeo::input {
namespace {

using formats::DecodeBuffer;

constexpr std::size_t kBlocksPerPage = 64;
constexpr DecodeBuffer::Capacity kPageRoom{1024, 1024, 64 * 1024};  // room in addition to one block's worst case

// True for counters of damage, and for the bytes that the maximum size cut off.
constexpr auto kTold = [](auto counter) { return is_anomaly(counter) || counter == decltype(counter)::cut_bytes; };

class BlockSpanDecoder final : public SpanDecoder {
 public:
  BlockSpanDecoder(const formats::BlockFormat& format, std::uint32_t max_chunk_bytes, std::span<const std::uint16_t> elinks)
      : decoder_({.format = format, .max_chunk_bytes = max_chunk_bytes}, elinks) {}

  DecodeBuffer::Capacity room() const override { return decoder_.capacity_for(1) + kPageRoom; }
  DecodeBuffer::Capacity finish_room() const override { return decoder_.capacity_for(0); }

  std::size_t decode(const CardSpan& span, std::size_t from, DecodeBuffer& out) override {
    const std::size_t block = decoder_.options().format.block_bytes;
    const std::span<const std::byte> rest = span.bytes.subspan(from);
    if (rest.size() < block) {
      partial_block_bytes_.add(rest.size());
      return rest.size();
    }
    return decoder_.decode(rest.first(std::min(rest.size() / block, kBlocksPerPage) * block), out);
  }
  void want(LinkIndex link, bool wanted) override { decoder_.want(link, wanted); }
  void finish(DecodeBuffer& out) override { decoder_.finish(out); }

  // Blocks of other links belong to another worker. All other anomalies are the card's.
  std::vector<NamedCounter> counters() const override {
    auto all = base::named_counters(decoder_.counters(), formats::kBlockCounterInfo, kTold);
    all.push_back({"partial_block_bytes", partial_block_bytes_.get()});
    return all;
  }

 private:
  formats::BlockDecoder decoder_;
  base::Gauge<std::uint64_t> partial_block_bytes_;
};

class RdhSpanDecoder final : public SpanDecoder {
 public:
  RdhSpanDecoder(const formats::RdhFrameDecoder::Options& options, std::span<const std::uint8_t> links)
      : decoder_(options, links) {}

  DecodeBuffer::Capacity room() const override { return decoder_.room(); }
  DecodeBuffer::Capacity finish_room() const override { return decoder_.finish_room(); }
  std::size_t decode(const CardSpan& span, std::size_t from, DecodeBuffer& out) override {
    return decoder_.decode(static_cast<std::uint8_t>(span.link), span.bytes, from, out);
  }
  void want(LinkIndex link, bool wanted) override { decoder_.want(link, wanted); }
  void finish(DecodeBuffer& out) override { decoder_.finish(out); }
  std::vector<NamedCounter> counters() const override {
    return base::named_counters(decoder_.counters(), formats::kRdhFrameCounterInfo, kTold);
  }

 private:
  formats::RdhFrameDecoder decoder_;
};

}  // namespace

std::unique_ptr<SpanDecoder> make_block_span_decoder(const formats::BlockFormat& format, std::uint32_t max_chunk_bytes,
                                                     std::span<const std::uint16_t> elinks) {
  return std::make_unique<BlockSpanDecoder>(format, max_chunk_bytes, elinks);
}

std::unique_ptr<SpanDecoder> make_rdh_span_decoder(const formats::RdhFrameDecoder::Options& options,
                                                   std::span<const std::uint8_t> links) {
  return std::make_unique<RdhSpanDecoder>(options, links);
}

}  // namespace rodeo::input
