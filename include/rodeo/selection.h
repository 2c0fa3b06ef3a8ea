// EventSelection: decides whether a whole event is kept, and in which streams. It runs in the filter nodes of a farm.
//
//     class HighEnergy final : public rodeo::EventSelection {
//      public:
//       rodeo::Selected select(const rodeo::WholeEvent& event) override {
//         const rodeo::EventRob* rob = event.find({0x00420001});
//         const bool high = rob != nullptr && energy_of(rob->contiguous(scratch_)) > threshold_;
//         return high ? rodeo::Selected::accept({{"physics", "Main"}}) : rodeo::Selected::reject();
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

/// One ROB fragment from its readout (raw event format: ROB header, ROD, its data). It is not copied, so it may be in
/// several pieces.
struct EventRob {
  SourceId source_id = {};
  std::uint32_t status = 0;  ///< first status word; 0: no fault
  std::span<const std::span<const std::byte>> parts;

  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const auto part : parts) sum += part.size();
    return sum;
  }

  /// The whole fragment in one piece: in place, or copied to `scratch` if it has several pieces.
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

/// The event as a selection sees it. Valid during the call; read only.
struct WholeEvent {
  std::uint64_t global_id = 0;  ///< never repeats within a run (docs/reference/formats/identifiers.md)
  L1Id l1id = {};
  std::uint32_t run_number = 0;
  std::uint16_t lumi_block = 0;
  std::uint16_t scan_step = 0;
  std::uint16_t bcid = 0;
  std::uint8_t trigger_type = 0;
  std::uint32_t step = 0;          ///< number of earlier `more` verdicts for this event
  std::span<const EventRob> robs;  ///< the fetched ROBs

  /// nullptr if the ROB was not fetched, or is not in the event.
  const EventRob* find(SourceId source_id) const {
    for (const EventRob& rob : robs) {
      if (rob.source_id == source_id) return &rob;
    }
    return nullptr;
  }
};

/// A stream: type (physics, calibration, debug, express, monitoring) and name, of letters, digits, `_` and `-`, at most 16
/// and 32.
struct SelectedStream {
  std::string type = "physics";
  std::string name = "Main";
  bool obeys_lumi_block = true;
};

/// The decision of a selection on an event.
struct Selected {
  enum class Verdict : std::uint8_t { rejected, accepted, more };
  Verdict verdict = Verdict::rejected;
  std::vector<SelectedStream> streams = {};  ///< an accepted event has at least one
  std::vector<SourceId> robs = {};           ///< for `more`: the ROBs to fetch next; empty: all

  static Selected reject() { return {}; }
  static Selected accept(std::vector<SelectedStream> streams = {{}}) { return {Verdict::accepted, std::move(streams), {}}; }
  /// Asks for these ROBs and a further call, for nodes that build in steps (`building` = `steps`).
  static Selected more(std::vector<SourceId> robs) { return {Verdict::more, {}, std::move(robs)}; }
};

/// One object serves one thread of a filter node. If select() throws, or its verdict cannot be carried out, the event goes
/// to a debug stream. select() never gets events that lack fragments.
class EventSelection {
 public:
  virtual ~EventSelection() = default;

  /// The ROBs to fetch first, if `building` is `steps`; empty: all. Called once, before the first event.
  virtual std::vector<SourceId> first_robs() const { return {}; }

  /// May take any time within the farm's time-out of an event.
  virtual Selected select(const WholeEvent& event) = 0;

  /// Totals for the report. Any thread, while select() runs.
  virtual std::vector<NamedCounter> counters() const { return {}; }
};

}  // namespace rodeo
