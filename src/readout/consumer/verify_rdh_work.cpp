#include "readout/consumer/verify_rdh_work.h"

#include "formats/rdh_payload.h"
#include "rodeo/settings.h"

namespace rodeo::readout {
namespace {

constexpr std::uint32_t kL1IdMask = 0xffffff;

// Link ids in chunk headers are bits 47..16 of the FID. The link number is bits 34..22 of the FID.
std::uint32_t link_number(std::uint32_t link_id) { return link_id >> 6 & 0x1fffU; }

}  // namespace

void VerifyRdhWork::process(Fragment& fragment) {
  links_.next_fragment();
  std::uint32_t chunks = 0;
  const auto wrong = [&](base::Gauge<std::uint64_t>& counter, std::uint32_t link_id) {
    counter.add(1);
    first_wrong_.set(fragment, link_id);
  };
  const bool sound = fragment.for_each_chunk([&](const ChunkHeader& header, std::span<const std::byte> bytes) {
    ++chunks;
    if (!links_.add(header.link_id)) wrong(duplicate_links_, header.link_id);
    if (header.felix_status != 0 || header.rodeo_status != 0) {
      flagged_chunks_.add(1);
      return;
    }
    const auto finding =
        formats::verify_rdh_frame(provable_, bytes, link_number(header.link_id), settings_.orbits_per_frame);
    if (finding != formats::RdhFrameFinding::good && finding != formats::RdhFrameFinding::fewer_orbits) {
      return wrong(wrong_chunks_, header.link_id);
    }
    const auto number = numbers_.of(formats::Rdh::read(bytes.data()));
    if (!number || (*number & kL1IdMask) != (fragment.l1id.value & kL1IdMask)) {
      wrong(wrong_triggers_, header.link_id);
    } else if (finding == formats::RdhFrameFinding::fewer_orbits) {
      unfinished_frames_.add(1);
    } else {
      verified_chunks_.add(1);
    }
  });
  if (!sound || chunks != fragment.chunks) wrong(broken_fragments_, 0);
}

std::vector<NamedCounter> VerifyRdhWork::counters() const {
  std::vector<NamedCounter> out{
      {"verified_chunks", verified_chunks_.get()},
      {"mismatches", wrong_chunks_.get() + duplicate_links_.get() + wrong_triggers_.get() + broken_fragments_.get()},
      {"flagged_chunks", flagged_chunks_.get()},
      {"unfinished_frames", unfinished_frames_.get()},
      {"wrong_chunks", wrong_chunks_.get()},
      {"duplicate_links", duplicate_links_.get()},
      {"wrong_triggers", wrong_triggers_.get()},
      {"broken_fragments", broken_fragments_.get()}};
  first_wrong_.add_to(out);
  return out;
}

namespace {

const Settings<VerifyRdhWork::Settings>& verify_rdh_settings() {
  using S = VerifyRdhWork::Settings;
  static const Settings<S> settings{
      setting(&S::seed, "seed", "Seed of the provable payload: that of the emulated card."),
      setting(&S::orbits_per_frame, "orbits_per_frame", "Orbits of a chunk, as the input makes them.",
              {.minimum = 1, .maximum = 4096}),
  };
  return settings;
}

}  // namespace

std::vector<Key> VerifyRdhWork::keys() { return verify_rdh_settings().keys(); }
VerifyRdhWork::Settings VerifyRdhWork::settings(const Parameters& parameters) {
  return verify_rdh_settings().read(parameters);
}

}  // namespace rodeo::readout
