// What every event header says of the run: set once by the application before it creates the consumers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/event_frame.h"
#include "formats/file_marks.h"

namespace rodeo::readout {

struct RunInfo {
  std::uint32_t run_number = 1;
  std::uint32_t run_type = 0xf;  ///< 0 physics, 1 calibration, 2 cosmics, 0xf test
  std::uint32_t lumi_block = 1;
  SourceId source_id = {0x007c0000};  ///< of the full event
  std::string project = "rodeo";
  std::string stream_type = "calibration";
  std::string stream_name = "readout";
  std::string readout_name = "readout";  ///< of the process: names files, sockets
  bool emulated = false;                 ///< ors 0x80000000 to the run type
  std::optional<formats::ProvableMark> provable =
      {};                                      ///< the payload proves itself: files say so, `rodeo data verify` uses it
  std::vector<std::string> free_strings = {};  ///< what else files say of the run
};

/// Replaces the process-wide description. Before any component is created; not while a run is under way.
void set_run_info(RunInfo info);

const RunInfo& run_info();

/// What the run puts into every event header; checksums as by default.
formats::EventFrameSettings event_frame_settings(const RunInfo& run);

/// When the event of a fragment was: the same for every consumer. Any thread.
formats::EventStamp event_stamp(const Fragment& fragment);

}  // namespace rodeo::readout
