#include "readout/consumer/verify_rdh_work.h"

#include "formats/rdh_payload.h"
#include "rodeo/settings.h"

namespace rodeo::readout {
namespace {

constexpr std::uint32_t kL1IdMask = 0xffffff;

void add(std::atomic<std::uint64_t>& cell, std::uint64_t n = 1) {
  cell.store(cell.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

// Of a chunk header's link id as FIDs make it: bits 47..16 of the FID, of which the link number are bits 34..22.
std::uint32_t link_number(std::uint32_t link_id) { return link_id >> 6 & 0x1fffU; }

}  // namespace

void VerifyRdhWork::process(Fragment& fragment) {
  links_.next_fragment();
  std::uint32_t chunks = 0;
  const bool sound = fragment.for_each_chunk([&](const ChunkHeader& header, std::span<const std::byte> bytes) {
    ++chunks;
    if (!links_.add(header.link_id)) add(duplicate_links_);
    if (header.felix_status != 0 || header.rodeo_status != 0) {
      add(flagged_chunks_);
      return;
    }
    const auto finding =
        formats::verify_rdh_frame(provable_, bytes, link_number(header.link_id), settings_.orbits_per_frame);
    if (finding != formats::RdhFrameFinding::good && finding != formats::RdhFrameFinding::fewer_orbits) {
      add(wrong_chunks_);
      return;
    }
    const std::uint32_t orbit = formats::Rdh::read(bytes.data()).orbit();
    if (((orbit / settings_.orbits_per_frame) & kL1IdMask) != (fragment.l1id.value & kL1IdMask)) {
      add(wrong_triggers_);
    } else {
      add(verified_chunks_);
    }
  });
  if (!sound || chunks != fragment.chunks) add(broken_fragments_);
}

std::vector<NamedCounter> VerifyRdhWork::counters() const {
  const auto get = [](const std::atomic<std::uint64_t>& cell) { return cell.load(std::memory_order_relaxed); };
  return {{"verified_chunks", get(verified_chunks_)},
          {"mismatches", get(wrong_chunks_) + get(duplicate_links_) + get(wrong_triggers_) + get(broken_fragments_)},
          {"flagged_chunks", get(flagged_chunks_)},
          {"wrong_chunks", get(wrong_chunks_)},
          {"duplicate_links", get(duplicate_links_)},
          {"wrong_triggers", get(wrong_triggers_)},
          {"broken_fragments", get(broken_fragments_)}};
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
