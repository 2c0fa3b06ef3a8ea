#include "readout/builder/worker_equipment.h"

#include <vector>

#include "readout/builder/builder_common.h"
#include "readout/extractor/field_extractor.h"

namespace rodeo::readout {

WorkerEquipment equip_worker(const BuilderContext& context, std::span<const BuilderLink> links, bool trigger_list) {
  std::vector<Fid> fids;
  fids.reserve(links.size());
  for (const BuilderLink& link : links) fids.push_back(link.fid);
  WorkerEquipment equipment;
  equipment.stream = context.input->open(fids);
  if (trigger_list) {
    equipment.trigger_list = open_trigger_list(context);
    equipment.trigger_extractor = make_ttc_extractor();
  }
  equipment.extractor = context.make_extractor();
  if (context.make_checker) equipment.checker = context.make_checker();
  return equipment;
}

void plugin_threw(const char* what, WorkerCounters& counters, base::LogThrottle& throttle) {
  counters.add(WorkerCounter::plugin_errors);
  if (const auto turn = throttle.turn()) {
    base::log_warning("a plug-in threw while it looked at chunks: {}{}", what, turn.suffix());
  }
}

}  // namespace rodeo::readout
