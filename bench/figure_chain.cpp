#include "bench/figure_chain.h"

#include <unistd.h>

#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/log.h"
#include "cli/output.h"
#include "cli/part_process.h"
#include "cli/program.h"
#include "formats/fid.h"
#include "settings/text_file.h"
#include "transport/bus.h"

namespace rodeo::bench {

using namespace cli;

namespace {

namespace fs = std::filesystem;
using settings::Json;

constexpr std::uint32_t kFibres = 24;
constexpr std::uint32_t kElinks = 8;
constexpr std::uint32_t kMostCards = 6;

/// The settings of one point, in addition to the common ones.
struct ChainPoint {
  const char* what;  ///< name of the varied quantity: "cards"
  std::uint32_t value = 0;
  std::uint32_t links = 0;
  std::string input;          ///< lines of [router.input]
  std::string builder;        ///< lines of [readout.builder]
  std::string robs;           ///< [[readout.rob]] tables
  std::uint32_t streams = 1;  ///< fragments of an event, or independent streams; rates are for one of them
};

std::string configuration_of(const ChainPoint& point, const fs::path& bus) {
  const std::string name = fmt::format("figure-{}", ::getpid());
  return fmt::format(
      "[router]\nname = \"{0}\"\nbus = \"{1}\"\nwait_for_subscribers = true\n"
      "[router.input]\ntype = \"generator\"\nrate = \"0\"\n{2}"
      "[run]\nnumber = 1\ntype = \"test\"\n[readout]\nname = \"{0}\"\n[readout.input]\ntype = \"network\"\nbus = \"{1}\"\n"
      "[readout.builder]\n{3}[readout.extractor]\ntype = \"rodeo\"\n{4}"
      "[[readout.consumer]]\ntype = \"processor\"\nwork = \"read\"\n",
      name, bus.string(), point.input, point.builder, point.robs);
}

Json json_in(const fs::path& file) {
  const auto text = settings::read_text_file(file);
  const auto json = text ? Json::parse(*text) : std::unexpected(text.error());
  if (!json) throw SetupError(json.error());
  return *json;
}

/// Runs both processes and returns their results. Throws SetupError, also if a chunk is not in any count.
Json measure(const ChainPoint& point, const FigureSettings& settings, const fs::path& directory) {
  const fs::path place = directory / fmt::format("{}-{}", point.what, point.value);
  fs::create_directories(place);
  const fs::path configuration = place / "chain.toml";
  const fs::path bus = place / "bus";
  const fs::path report_file = place / "readout.json";
  if (const auto written = write_text(configuration, configuration_of(point, bus)); !written)
    throw SetupError(written.error());
  // The router's time begins when the readout has subscribed to all links; the readout ends when the links end.
  PartProcess router({.command = {"route", "--seconds", fmt::format("{:.3f}", settings.seconds), "--json",
                                  (place / "router.json").string(), configuration.string()},
                      .log = place / "router.log",
                      .there =
                          [&] {
                            const auto reading = transport::read_bus(bus);
                            std::size_t links = 0;
                            for (const auto& entry : reading ? reading->entries : std::vector<transport::BusEntry>{})
                              links += entry.trigger_list ? 0 : entry.links.size();
                            return links == point.links;
                          },
                      .lack = "no router"});
  const auto ended = run_program({rodeo_command(), "readout", configuration.string(), "--json", report_file.string()}, true);
  if (!ended) throw SetupError(ended.error());
  if (*ended != 0)
    throw SetupError({"cli.part", fmt::format("the readout ended with {}", *ended), configuration.string(),
                      "run `rodeo route` and `rodeo readout` with this file to see the reason"});
  if (!router.ended(std::chrono::seconds{60})) throw SetupError({"cli.part", "the router did not end", place.string()});
  const Json report = json_in(report_file);
  const Json routed = json_in(place / "router.json");
  const auto number = [&](std::string_view group, std::string_view key) {
    return member(member(report, group), key).number();
  };
  const double seconds = member(member(routed, "run"), "seconds").number();
  const double fragments = number("fragments", "built");
  const double lost = number("chunks", "sent") - number("chunks", "built");
  if (lost != 0 || fragments == 0)
    throw SetupError({"readout.bench_mismatch",
                      fmt::format("{:.0f} fragments were built, {:.0f} chunks are missing", fragments, lost),
                      configuration.string()});
  Json out = Json::object({{point.what, point.value}});
  out["rate_hz"] = fragments / seconds / point.streams;
  out["chunks_per_second"] = number("chunks", "built") / seconds;
  out["bytes_per_second"] = number("bytes", "in") / seconds;
  out["fragments"] = fragments;
  out["cpu_seconds"] = Json::object({{"router", member(member(routed, "cpu_seconds"), "router")},
                                     {"generator", member(member(routed, "cpu_seconds"), "emulator")},
                                     {"readout", member(member(report, "cpu_seconds"), "readout")}});
  base::log_info("{} {}: {:.1f} kHz", point.what, point.value, out["rate_hz"].number() * 1e-3);
  return out;
}

/// The capacity of the transport alone: bare pages, and the bytes on the wire for a chunk of this size.
Json network_of(const FigureSettings& settings, std::uint32_t chunk_bytes, const fs::path& directory) {
  const fs::path file = directory / "transport.json";
  const auto ended = run_program({rodeo_command(), "bench", "transport", "--chunk-bytes", fmt::format("{}", chunk_bytes),
                                  "--seconds", fmt::format("{:.3f}", settings.seconds), "--json", file.string()},
                                 true);
  if (!ended) throw SetupError(ended.error());
  if (*ended != 0)
    throw SetupError(
        {"cli.part", fmt::format("`rodeo bench transport` ended with {}", *ended), "", "run it by hand to see the reason"});
  const Json found = json_in(file);
  Json out = Json::object();
  for (const char* const key : {"provider", "bare_bytes_per_second", "wire_bytes_per_chunk"}) out[key] = member(found, key);
  return out;
}

Json sweep(const char* title, const char* setup, std::vector<ChainPoint> points, std::uint32_t chunk_bytes,
           const FigureSettings& settings, const fs::path& directory) {
  fs::create_directories(directory);
  if (settings.sparse) points = {points.front(), points.back()};
  Json out = Json::object({{"title", title},
                           {"setup", setup},
                           {"network", network_of(settings, chunk_bytes, directory)},
                           {"points", Json::array()}});
  for (const ChainPoint& point : points) out["points"].push_back(measure(point, settings, directory));
  return out;
}

}  // namespace

Json measure_chain4(const FigureSettings& settings, const fs::path& directory) {
  std::vector<ChainPoint> points;
  std::string robs;
  for (std::uint32_t card = 0; card < kMostCards; ++card) {
    std::string links;
    for (std::uint32_t fibre = 0; fibre < kFibres; ++fibre)
      links += fmt::format("{}\"{}+{}\"", fibre == 0 ? "" : ", ", formats::to_text(Fid::of(0, card, fibre, 0)), kElinks);
    robs += fmt::format("[[readout.rob]]\nsource_id = \"{:#010x}\"\nlinks = [{}]\n", 0x610001 + card, links);
    points.push_back({.what = "cards",
                      .value = card + 1,
                      .links = kFibres * kElinks * (card + 1),
                      .input = fmt::format("links = {}\nchunk_bytes = 40\n", kFibres * kElinks * (card + 1)),
                      .builder = "type = \"gbt\"\nchunk_size = 40\nwindow = 2048\ntimeout = \"1s\"\n",
                      .robs = robs,
                      .streams = card + 1});
  }
  return sweep("Figure 4 over the network. GBT mode: fragment rate against FELIX cards",
               "192 links x 40 B of each card, generator and router in one process, one builder a card in another", points,
               40, settings, directory);
}

Json measure_chain5(const FigureSettings& settings, const fs::path& directory) {
  std::vector<ChainPoint> points;
  for (const std::uint32_t streams : {1U, 2U, 3U, 4U, 6U, 8U, 12U, 24U}) {
    points.push_back(
        {.what = "streams",
         .value = streams,
         .links = kFibres,
         .input = fmt::format("format = \"full\"\nlinks = {}\ngroups = {}\nchunk_bytes = 5000\n", kFibres, streams),
         .builder = "type = \"full\"\n",
         .robs = fmt::format("[[readout.rob]]\nsource_id = \"0x00610100\"\nlinks_per_group = {}\n", kFibres / streams),
         .streams = streams});
  }
  return sweep("Figure 5 over the network. FULL mode: rate of each stream against their number",
               "24 links x 5000 B, in turn within a stream, generator and router in one process, a readout that reads every "
               "byte in another",
               points, 5000, settings, directory);
}

}  // namespace rodeo::bench
