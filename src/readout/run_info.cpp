#include "readout/run_info.h"

#include <utility>

#include "formats/stream_tags.h"

namespace rodeo::readout {
namespace {

RunInfo& current() {
  static RunInfo info;
  return info;
}

}  // namespace

void set_run_info(RunInfo info) { current() = std::move(info); }

const RunInfo& run_info() { return current(); }

formats::EventFrameSettings event_frame_settings(const RunInfo& run) {
  const formats::StreamTag tag{.name = run.stream_name, .type = run.stream_type};
  return {.source_id = run.source_id,
          .run_number = run.run_number,
          .run_type = run.run_type | (run.emulated ? formats::run_type::kSimulation : 0),
          .lumi_block = run.lumi_block,
          .stream_tags = formats::encode_stream_tags({&tag, 1})};
}

}  // namespace rodeo::readout
