// EventSelection: whether a whole event is kept, and for which streams: what runs in the filter nodes of a farm.
//
//     class HighEnergy final : public rodeo::EventSelection {
//      public:
//       rodeo::Selected select(const rodeo::WholeEvent& event) override {
//         const rodeo::EventRob* rob = event.find({0x00420001});
//         return rob != nullptr && energy_of(rob->contiguous(scratch_)) > threshold_ ? rodeo::Selected::accept({{"physics", "Main"}})
//                                                                                  : rodeo::Selected::reject();
//       }
//     };
//     RODEO_PLUGIN(registry) {
//       registry.add_selection({.name = "high_energy", .help = "Events with much energy"},
//                              [](const rodeo::Parameters&) { return std::make_unique<HighEnergy>(); });
//     }
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rodeo/ids.h"
#include "rodeo/input.h"

namespace rodeo {

/// One ROB fragment as its readout sent it (raw event format: ROB header, ROD, its data), uncopied: in one piece or in several.
struct EventRob {
  SourceId source_id = {};
  std::uint32_t status = 0;  ///< first status word; 0: nothing is wrong with it
  std::span<const std::span<const std::byte>> parts;

  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const auto part : parts) sum += part.size();
    return sum;
  }

  /// All of it in one piece: where it lies, or, if that is several places, copied to `scratch`.
  std::span<const std::byte> contiguous(std::vector<std::byte>& scratch) const {
    if (parts.size() <= 1) return parts.empty() ? std::span<const std::byte>{} : parts.front();
    scratch.resize(bytes());
    std::size_t at = 0;
    for (const auto part : parts) {
      std::memcpy(scratch.data() + at, part.data(), part.size());
      at += part.size();
    }
    return scratch;
  }
};

/// What a selection sees of an event. Valid during the call; nothing of it may be changed.
struct WholeEvent {
  std::uint64_t global_id = 0;  ///< never repeats within a run (docs/formats/identifiers.md)
  L1Id l1id = {};
  std::uint32_t run_number = 0;
  std::uint16_t lumi_block = 0;
  std::uint16_t scan_step = 0;
  std::uint16_t bcid = 0;
  std::uint8_t trigger_type = 0;
  std::uint32_t step = 0;          ///< from 0: how often the selection has asked for more
  std::span<const EventRob> robs;  ///< those that are here

  /// nullptr: it is not here.
  const EventRob* find(SourceId source_id) const {
    for (const EventRob& rob : robs) {
      if (rob.source_id == source_id) return &rob;
    }
    return nullptr;
  }
};

/// A stream: type (physics, calibration, debug, express, monitoring) and name, of letters, digits, `_` and `-`, at most 16 and 32.
struct SelectedStream {
  std::string type = "physics";
  std::string name = "Main";
  bool obeys_lumi_block = true;
};

/// What a selection says of an event.
struct Selected {
  enum class Verdict : std::uint8_t { rejected, accepted, more };
  Verdict verdict = Verdict::rejected;
  std::vector<SelectedStream> streams = {};  ///< of an accepted event: one at least
  std::vector<SourceId> robs = {};           ///< of `more`: those that it has to see as well; none: all

  static Selected reject() { return {}; }
  static Selected accept(std::vector<SelectedStream> streams = {{}}) { return {Verdict::accepted, std::move(streams), {}}; }
  /// It is asked again when these are here: partial requests in steps, where the node's `building` is `steps`.
  static Selected more(std::vector<SourceId> robs) { return {Verdict::more, {}, std::move(robs)}; }
};

/// One object serves one thread of a filter node. What select() throws makes the event go to a debug stream; so does a verdict that cannot be carried
/// out. An event that lacks fragments is never shown to it.
class EventSelection {
 public:
  virtual ~EventSelection() = default;

  /// The ROBs that it wants to see first, where `building` is `steps`; none: all. Called once, before the first event.
  virtual std::vector<SourceId> first_robs() const { return {}; }

  /// May take as long as it needs, within the farm's time-out of an event.
  virtual Selected select(const WholeEvent& event) = 0;

  /// Totals for the report. Any thread, while select() runs.
  virtual std::vector<NamedCounter> counters() const { return {}; }
};

}  // namespace rodeo
