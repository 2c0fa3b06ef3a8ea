#include "readout/silence_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/units.h"
#include "formats/fid.h"
#include "readout/sequence/id_format.h"

namespace rodeo::readout {
namespace {

constexpr double kShortSeconds = 10;

// As in Numbers::resolve() and extended(): an id that is further ahead counts as behind, or as after a reset.
std::optional<std::uint64_t> of_all_links(const SilentLinks& links) {
  constexpr std::uint64_t kResets = 127;
  constexpr std::uint64_t kBehind = 1 << 20;
  const IdFormat format(links.ids);
  const std::uint64_t period = format.period();
  if (links.listed) return format.has_ecr() || links.ids.has_bcid ? std::nullopt : std::optional(period);
  if (format.has_ecr()) {
    const bool often = links.reset_events > 0 && links.reset_events <= period - kBehind;
    return often ? kResets * links.reset_events : period - kBehind;
  }
  return format.shows_restarts() ? period / 2 : period - period / 4;
}

double seconds(std::uint64_t events, double rate_hz) { return static_cast<double>(events) / rate_hz; }

std::string length_text(std::uint64_t events, std::optional<double> rate_hz) {
  if (!rate_hz) return fmt::format("{} events", events);
  const auto time = std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(seconds(events, *rate_hz), 1e9) * 1e9));
  return fmt::format("{} ({} events at {})", base::format_duration(time), events, base::format_quantity(*rate_hz, "Hz"));
}

std::uint64_t number_of(const Parameters& parameters, std::string_view key) {
  return parameters.has(key) ? static_cast<std::uint64_t>(std::max<std::int64_t>(parameters.integer(key), 0)) : 0;
}

}  // namespace

SilenceLimit silence_limit(const SilentLinks& links) {
  const std::optional<std::uint64_t> all_links = of_all_links(links);
  const bool wide = IdFormat(links.ids).period() / 4 >= links.window;
  const bool by_peers =
      links.read_together > 1 || (links.links > 1 && (wide || links.compares_bcids)) || (links.has_others && wide);
  return {.one_link = by_peers || (links.listed && links.links > 1) ? std::nullopt : all_links, .all_links = all_links};
}

std::string silence_text(const SilenceLimit& limit, std::optional<double> rate_hz) {
  if (!limit.all_links) return "a link finds its place after a silence of any length";
  const std::string length = length_text(*limit.all_links, rate_hz);
  if (limit.one_link) return fmt::format("a link finds its place after a silence of less than {}", length);
  return fmt::format("a link finds its place after a silence of any length, all links at once after one of less than {}",
                     length);
}

bool is_short(const SilenceLimit& limit, std::optional<double> rate_hz) {
  return rate_hz && limit.all_links && seconds(*limit.all_links, *rate_hz) < kShortSeconds;
}

std::vector<SilenceNote> silence_notes(const ReadoutSettings& settings, const TriggerFields& ids,
                                       const std::vector<std::size_t>& links) {
  const Parameters& builder = settings.builder.parameters;
  const bool gbt = settings.builder.type == "gbt";
  if ((!gbt && settings.builder.type != "full") || !builder.has("trigger_list")) return {};
  const std::uint64_t workers = number_of(builder, "workers");
  const Parameters& input = settings.input.parameters;
  const std::uint64_t cards =
      settings.input.type == "card" && input.has("cards") ? std::max<std::size_t>(input.list("cards").size(), 1) : 1;
  struct Said {
    std::string text;
    bool is_short;
    std::vector<std::string> robs;
  };
  std::vector<Said> all;
  for (std::size_t i = 0; i < settings.robs.size(); ++i) {
    constexpr std::uint64_t kSeveral = 1 << 10;
    const RobSettings& rob = settings.robs[i];
    const std::uint64_t of_rob = links[i] > 0 ? links[i] : kSeveral;
    const std::uint64_t of_group = rob.links_per_group > 0 ? rob.links_per_group : of_rob;
    const std::uint64_t placed = gbt ? of_rob : of_group;
    const SilenceLimit limit =
        silence_limit({.ids = ids,
                       .listed = builder.boolean("trigger_list"),
                       .links = placed,
                       .read_together = placed / ((gbt ? std::max<std::uint64_t>(workers, 1) : 1) * cards),
                       .has_others = settings.robs.size() > 1 || placed < of_rob,
                       .window = number_of(builder, "window"),
                       .reset_events = settings.reset_events,
                       .compares_bcids = gbt && ids.has_bcid});
    std::string text = silence_text(limit, settings.trigger_rate_hz);
    auto said = std::ranges::find(all, text, &Said::text);
    if (said == all.end()) said = all.insert(all.end(), {std::move(text), is_short(limit, settings.trigger_rate_hz), {}});
    said->robs.push_back(formats::to_text(rob.source_id));
  }
  std::vector<SilenceNote> notes;
  for (const Said& said : all) {
    const std::string which = said.robs.size() > 2 ? fmt::format("ROB {} and {} more", said.robs[0], said.robs.size() - 1)
                                                   : fmt::format("ROB {}", fmt::join(said.robs, ", "));
    const char* const next = said.is_short ? "; a trigger list allows longer silences (readout.builder.trigger_list)" : "";
    notes.push_back({fmt::format("{}: {}{}", which, said.text, next), said.is_short});
  }
  return notes;
}

}  // namespace rodeo::readout
