#include "cli/chain_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "formats/fid.h"

namespace rodeo::cli {
namespace {

constexpr std::uint64_t kReadouts = 2;
constexpr std::uint64_t kNodes = 2;
// The share of events to record. It falls if the files would become too large.
constexpr double kAcceptedFraction = 0.25;

/// Links [first, end) of the card as ranges of FIDs, one for each fibre.
std::vector<std::string> link_ranges(const DemoCard& card, std::uint64_t first, std::uint64_t end) {
  std::vector<std::string> out;
  while (first < end) {
    const std::uint64_t on_fibre = first % card.elinks_per_fibre;
    const std::uint64_t count = std::min(end - first, card.elinks_per_fibre - on_fibre);
    const Fid fid =
        formats::fid_of_card_elink(0, 0, static_cast<std::uint16_t>(first / card.elinks_per_fibre << 6 | on_fibre));
    out.push_back(fmt::format("{}+{}", formats::to_text(fid), count));
    first += count;
  }
  return out;
}

/// The overrides of the options that begin with one of these prefixes.
void add_settings(std::vector<std::string>& to, const DemoOptions& options, std::initializer_list<std::string_view> tables) {
  for (const std::string& one : options.settings) {
    if (std::ranges::any_of(tables, [&](std::string_view table) { return one.starts_with(table); })) to.push_back(one);
  }
}

}  // namespace

std::vector<ChainPart> chain_parts(const DemoOptions& options, const DemoCard& card, const DemoDirectory& directory) {
  const std::string bus = directory.bus().string();
  std::vector<ChainPart> parts;
  const auto add = [&](std::string name, std::string kind, std::vector<std::string> told,
                       std::initializer_list<std::string_view> tables) {
    add_settings(told, options, tables);
    parts.push_back({std::move(name), std::move(kind), std::move(told)});
  };
  std::vector<std::string> emulator{fmt::format("emulator.trigger.serve={}", card.name),
                                    fmt::format("emulator.trigger.system={}", card.name)};
  std::ranges::copy(card.emulator_overrides(options), std::back_inserter(emulator));
  add("card", "emulator", std::move(emulator), {});
  add("router", "router", {fmt::format("router.bus={}", bus), fmt::format("router.input.cards={}", card.address)},
      {"router."});
  const std::uint64_t readouts = std::min(kReadouts, card.links);
  for (std::uint64_t i = 0; i < readouts; ++i) {
    const auto links = link_ranges(card, card.links * i / readouts, card.links * (i + 1) / readouts);
    add(fmt::format("readout-{}", i + 1), "readout",
        {fmt::format("readout.input.bus={}", bus), fmt::format("readout.consumer[hlt].bus={}", bus),
         fmt::format("readout.input.links={}", fmt::join(links, ",")),
         fmt::format("readout.rob[0].source_id={:#010x}", 0x610001 + i)},
        {"readout.", "run."});
  }
  add("supervisor", "supervisor",
      {fmt::format("farm.supervisor.bus={}", bus), fmt::format("farm.supervisor.trigger={}", card.name),
       fmt::format("farm.supervisor.system={}", card.name),
       fmt::format("farm.supervisor.decisions={}", (directory.path() / "decisions").string())},
      {"farm."});
  const double accepted = std::min(kAcceptedFraction, written_fraction(options, directory.free_bytes()));
  for (std::uint64_t i = 0; i < kNodes; ++i) {
    add(fmt::format("node-{}", i + 1), "node",
        {fmt::format("farm.node.bus={}", bus), fmt::format("farm.node.selection.fraction={}", accepted)}, {"farm."});
  }
  add("recorder", "recorder", {fmt::format("farm.recorder.bus={}", bus)}, {"farm."});
  return parts;
}

}  // namespace rodeo::cli
