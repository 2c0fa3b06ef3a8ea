#include "readout/retention_need.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <vector>

#include "base/sentence.h"
#include "input/generator_settings.h"
#include "readout/builder/full_builder.h"
#include "readout/builder/gbt_builder.h"
#include "readout/consumer/hlt_request_handler.h"

namespace rodeo::readout {
namespace {

using settings::ConfigurationErrors;
using settings::Table;

constexpr std::uint64_t kMostBuffers = 1 << 24;
constexpr std::uint64_t kMostCopies = 1 << 20;
constexpr std::uint64_t kSmallestWindow = 256;

constexpr const char* kLess = "keep less: `retention`, `rate` or `max_fragments` of the hlt_request_handler";

/// Number of links of the largest ROB; nothing if only the input knows them.
std::optional<std::size_t> most_links(const ReadoutSettings& settings,
                                      const std::optional<input::GeneratorSettings>& generator) {
  std::size_t most = 0;
  for (const RobSettings& rob : settings.robs) {
    if (rob.links.empty() && !generator) return std::nullopt;
    most = std::max(most, rob.links.empty() ? generator->links.size() : rob.links.size());
  }
  return most;
}

/// The number of buffers of one worker that a fragment may take: more than one if chunks are known to be larger than
/// `chunk_size`.
std::uint64_t buffers_of_a_fragment(const GbtSettings& gbt, std::size_t links,
                                    const std::optional<input::GeneratorSettings>& generator) {
  if (!generator || links == 0) return 1;
  const std::size_t in_a_buffer = gbt.chunks_per_slice(links, generator->size_max) / (1 + gbt.max_extensions);
  if (in_a_buffer == 0) return 1 + gbt.max_extensions;
  const std::size_t chunks = gbt.links_per_worker(links);
  return std::min<std::uint64_t>((chunks + in_a_buffer - 1) / in_a_buffer, 1 + gbt.max_extensions);
}

class Need {
 public:
  Need(const Table& builder, ReadoutSettings& settings, ConfigurationErrors& errors)
      : builder_(builder), settings_(settings), errors_(errors) {}

  /// Sets `key` to `wanted` if the builder's table does not give it. Refuses a value below `least` or above `most`.
  void set(const char* key, std::uint64_t least, std::uint64_t wanted, std::uint64_t most, const std::string& why) {
    Parameters& parameters = settings_.builder.parameters;
    const bool given = builder_.given(key) && parameters.integer(key) != 0;
    const auto has = given ? static_cast<std::uint64_t>(parameters.integer(key)) : wanted;
    if (has >= least && has <= most) return parameters.set(key, static_cast<std::int64_t>(has));
    errors_.push_back(
        {"readout.few_buffers",
         has > most
             ? fmt::format("{} needs readout.builder.{} = {}, and {} is the most", why, key, wanted, most)
             : fmt::format(
                   "{} needs readout.builder.{} = {} at least, not {}: the builder would stop before the limit of kept "
                   "fragments is reached",
                   why, key, least, has),
         where_of(builder_, key), has > most ? kLess : fmt::format("leave readout.builder.{} out, or {}", key, kLess)});
  }

 private:
  const Table& builder_;
  ReadoutSettings& settings_;
  ConfigurationErrors& errors_;
};

}  // namespace

std::uint64_t most_held_fragments(const ReadoutSettings& settings) {
  std::uint64_t most = 0;
  // Sums over the handlers: all keep the same fragments, but the clients of one handler may be behind those of another.
  for (const ComponentSettings& consumer : settings.consumers) {
    if (consumer.type == "hlt_request_handler") most += HltRequestHandler::retention_of(consumer.parameters).most_held();
  }
  return most;
}

void size_buffers_for_retention(const Table& builder, ReadoutSettings& settings, ConfigurationErrors& errors) {
  const std::uint64_t held = most_held_fragments(settings);
  if (held == 0) return;
  try {
    std::optional<input::GeneratorSettings> generator;
    if (settings.input.type == "generator") generator = input::GeneratorSettings::from(settings.input.parameters);
    const std::optional<std::size_t> links = most_links(settings, generator);
    Need need(builder, settings, errors);
    const std::string why = fmt::format("a handler that may hold {} of a ROB", base::counted(held, "fragment"));
    if (settings.builder.type == "gbt") {
      const auto gbt = GbtSettings::from(settings.builder.parameters);
      const std::uint64_t window = std::max(kSmallestWindow, std::bit_ceil(gbt.window));
      const std::uint64_t buffers = held * buffers_of_a_fragment(gbt, links.value_or(0), generator);
      need.set("buffers", buffers + kSmallestWindow, buffers + window + window / 4, kMostBuffers, why);
    } else if (settings.builder.type == "full") {
      std::uint64_t groups = 1;
      for (const RobSettings& rob : settings.robs) {
        if (rob.links_per_group == 0) continue;
        if (!links) {
          errors.push_back({"readout.few_buffers",
                            fmt::format("{} needs a builder with memory for all groups, and their number is not known", why),
                            rob.where, "name the links of the ROB in readout.rob.links"});
          return;
        }
        groups = std::max<std::uint64_t>(groups, (*links + rob.links_per_group - 1) / rob.links_per_group);
      }
      const FullSettings defaults;
      const auto workers = static_cast<std::uint64_t>(settings.builder.parameters.integer("workers"));
      const std::uint64_t fragments = held * ((groups + workers - 1) / workers);
      need.set("fragments", fragments + kSmallestWindow, fragments + defaults.fragments, kMostBuffers, why);
      // Kept fragments must not stay in the input's memory.
      need.set("copies", fragments, fragments + defaults.copies, kMostCopies, why);
      if (generator && !builder.given("copy_size") &&
          generator->size_max > static_cast<std::size_t>(settings.builder.parameters.integer("copy_size")))
        settings.builder.parameters.set("copy_size", static_cast<std::int64_t>(generator->size_max));
    }
  } catch (const SetupError&) {
    return;  // errors in these settings are reported when the components are made
  }
}

}  // namespace rodeo::readout
