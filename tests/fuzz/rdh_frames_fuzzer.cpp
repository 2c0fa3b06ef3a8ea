// Any bytes as superpages of one link: the decoder and its slow twin must find the same frames.
#include <cstdint>
#include <vector>

#include "formats/rdh_frame_decoder.h"
#include "formats/rdh_twin.h"
#include "fuzz/check.h"

using namespace rodeo::formats;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  JoinedParts parts;
  const RdhFrameDecoder::Options options{
      .orbits_per_frame = 1U + data[0] % 4, .max_chunk_bytes = 64U + data[1] * 16U, .parts = &parts};
  const std::size_t superpage_bytes = 64U + data[2] * 64U;
  const std::uint8_t link = data[3];
  const std::vector<std::byte> bytes(reinterpret_cast<const std::byte*>(data + 4),
                                     reinterpret_cast<const std::byte*>(data + size));

  RdhFrameDecoder decoder(options, {&link, 1});
  testing::RdhTwin twin(options.orbits_per_frame, options.max_chunk_bytes, link);
  std::vector<testing::Frame> frames;
  DecodeBuffer buffer(decoder.room());
  const auto lies_there = [&](std::span<const std::byte> one) {
    return one.data() >= bytes.data() && one.data() + one.size() <= bytes.data() + bytes.size();
  };
  const auto take = [&](DecodeBuffer& from) {
    FUZZ_CHECK(testing::parts_are_the_frames(from.runs(), parts, lies_there));
    parts.clear();
    for (const rodeo::ChunkRun& run : from.runs()) frames.push_back({run.status, {run.data, run.data + run.size}});
    from.clear();
  };
  for (std::size_t at = 0; at < bytes.size(); at += superpage_bytes) {
    const std::span<const std::byte> superpage = std::span(bytes).subspan(at, std::min(superpage_bytes, bytes.size() - at));
    twin.superpage(superpage);
    for (std::size_t done = 0; done < superpage.size();) {
      const std::size_t taken = decoder.decode(link, superpage, done, buffer);
      FUZZ_CHECK(taken > 0 && taken <= superpage.size() - done);
      done += taken;
      take(buffer);
    }
  }
  DecodeBuffer last(decoder.finish_room());
  decoder.finish(last);
  take(last);
  twin.finish();
  FUZZ_CHECK(frames == twin.frames);
  return 0;
}
