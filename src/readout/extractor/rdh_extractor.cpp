#include "readout/extractor/rdh_extractor.h"

#include "formats/time_frame_numbers.h"
#include "readout/run_info.h"
#include "rodeo/settings.h"

namespace rodeo::readout {
namespace {

constexpr std::uint32_t kL1IdMask = 0xffffff;
constexpr const char* kName = "rdh";

class RdhExtractor final : public TriggerExtractor {
 public:
  explicit RdhExtractor(std::uint32_t orbits_per_frame) : numbers_(orbits_per_frame) {}

  TriggerFields fields() const override { return {.l1id_bits = 24, .has_bcid = true, .has_trigger_type = true}; }

  std::uint32_t extract(const ChunkRun& run, std::uint32_t first, std::uint32_t n, std::uint32_t* l1ids,
                        std::uint16_t* bcids) override {
    const std::uint32_t done = numbers(run, first, n, l1ids, bcids);
    if (!told_ && numbers_.phase()) {
      set_frame_phase(*numbers_.phase());
      told_ = true;
    }
    return done;
  }

  std::uint8_t trigger_type(std::span<const std::byte> chunk) override {
    return chunk.size() < formats::kRdhBytes ? std::uint8_t{0}
                                             : static_cast<std::uint8_t>(formats::Rdh::read(chunk.data()).trigger_type());
  }

 private:
  std::uint32_t numbers(const ChunkRun& run, std::uint32_t first, std::uint32_t n, std::uint32_t* l1ids,
                        std::uint16_t* bcids) {
    for (std::uint32_t i = 0; i < n; ++i) {
      const std::span<const std::byte> chunk = run.chunk(first + i);
      if (chunk.size() < formats::kRdhBytes) return i;
      const formats::Rdh header = formats::Rdh::read(chunk.data());
      if (!header.plausible()) return i;
      const std::optional<std::uint32_t> number = numbers_.of(header);
      if (!number) return i;
      l1ids[i] = *number & kL1IdMask;
      bcids[i] = static_cast<std::uint16_t>(header.bc());
    }
    return n;
  }

  formats::TimeFrameNumbers numbers_;
  bool told_ = false;
};

struct Frames {
  std::uint32_t orbits = 1;
};

const Settings<Frames>& frame_settings() {
  static const Settings<Frames> frames{
      setting(&Frames::orbits, "orbits_per_frame",
              "Orbits of a chunk, as the input makes them: 1 for heartbeat frames, the time frame's length for time frames.",
              {.minimum = 1, .maximum = 4096})};
  return frames;
}

}  // namespace

std::unique_ptr<TriggerExtractor> make_rdh_extractor(std::uint32_t orbits_per_frame) {
  return std::make_unique<RdhExtractor>(orbits_per_frame);
}

std::uint32_t orbits_of_chunks(const std::string& extractor, const Parameters& parameters) {
  return extractor == kName ? frame_settings().read(parameters).orbits : 0;
}

void register_rdh_extractor(Registry& registry) {
  registry.add_extractor(
      {.name = kName,
       .help = "Orbit (or number of the time frame), BCID and trigger type of a frame's first RDH",
       .keys = frame_settings().keys()},
      [](const Parameters& parameters) { return make_rdh_extractor(frame_settings().read(parameters).orbits); });
}

}  // namespace rodeo::readout
