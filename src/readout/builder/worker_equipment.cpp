#include "readout/builder/worker_equipment.h"

#include <exception>

#include "formats/link_names.h"
#include "input/chunk_limit.h"
#include "readout/builder/builder_common.h"

namespace rodeo::readout {

WorkerEquipment equip_worker(const BuilderContext& context, std::span<const BuilderLink> links) {
  WorkerEquipment equipment;
  equipment.links.reserve(links.size());
  for (const BuilderLink& link : links) equipment.links.push_back(link.fid);
  equipment.stream = context.input->open(equipment.links);
  equipment.player = input::player_of(*equipment.stream);
  if (input::delivers_parts(*equipment.stream)) {
    const auto settings = input::JoinedStream::settings(input::max_chunk_bytes(*equipment.stream), links.size());
    auto joined = std::make_unique<input::JoinedStream>(std::move(equipment.stream), links.size(), settings);
    equipment.joined = joined.get();
    equipment.stream = std::move(joined);
  }
  equipment.extractor = context.make_extractor();
  if (context.make_checker) equipment.checker = context.make_checker();
  equipment.extractor_name = context.extractor_name.empty() ? "extractor" : context.extractor_name;
  equipment.checker_name = context.checker_name.empty() ? "checker" : context.checker_name;
  return equipment;
}

void plugin_threw(const std::string& plugin, Fid link, base::LogThrottle& throttle) {
  const auto turn = throttle.turn();
  if (!turn) return;
  std::string what;
  try {
    throw;
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
    what = "something that is not a std::exception";
  }
  base::log_warning("the {} threw at a chunk of link {}: {}{}", plugin, formats::named_link(link), what, turn.suffix());
}

}  // namespace rodeo::readout
