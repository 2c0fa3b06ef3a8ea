#include "input/rdh_span_decoder.h"

#include <string>

namespace rodeo::input {
namespace {

class RdhSpanDecoder final : public SpanDecoder {
 public:
  RdhSpanDecoder(const formats::RdhFrameDecoder::Options& options, std::span<const std::uint8_t> links)
      : decoder_(options, links) {}

  formats::DecodeBuffer::Capacity room() const override { return decoder_.room(); }
  formats::DecodeBuffer::Capacity finish_room() const override { return decoder_.finish_room(); }
  std::size_t decode(const CardSpan& span, std::size_t from, formats::DecodeBuffer& out) override {
    return decoder_.decode(static_cast<std::uint8_t>(span.link), span.bytes, from, out);
  }
  void finish(formats::DecodeBuffer& out) override { decoder_.finish(out); }

  std::vector<NamedCounter> counters() const override {
    std::vector<NamedCounter> all;
    for (std::size_t i = 0; i < formats::kRdhFrameCounters; ++i) {
      const auto counter = static_cast<formats::RdhFrameCounter>(i);
      if (formats::is_anomaly(counter))
        all.push_back({std::string(formats::kRdhFrameCounterInfo[i].name), decoder_.counters().read(counter)});
    }
    return all;
  }

 private:
  formats::RdhFrameDecoder decoder_;
};

}  // namespace

std::unique_ptr<SpanDecoder> make_rdh_span_decoder(const formats::RdhFrameDecoder::Options& options,
                                                   std::span<const std::uint8_t> links) {
  return std::make_unique<RdhSpanDecoder>(options, links);
}

}  // namespace rodeo::input
