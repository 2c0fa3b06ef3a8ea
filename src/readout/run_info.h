// What every event header says of the run: set by the application before it creates the consumers, and told to them again where the run is known later.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/event_frame.h"
#include "formats/event_ids.h"

#include "formats/file_marks.h"
#include "formats/numbering.h"

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
  formats::IdLayout ids = {};            ///< of L1 ids, as the extractor says
  formats::Numbering numbering = {};     ///< what the ids count; without the phase, which the data tell
  bool emulated = false;                 ///< ors 0x80000000 to the run type
  std::optional<formats::ProvableMark> provable =
      {};                                      ///< the payload proves itself: files say so, `rodeo data verify` uses it
  std::vector<std::string> free_strings = {};  ///< what else files say of the run
  std::vector<SourceId> robs = {};             ///< of the fragments that come: in FULL mode of each group of links
};

/// Replaces the process-wide description. Before any component is created; not while a run is under way.
void set_run_info(RunInfo info);

const RunInfo& run_info();

/// The phase of the run's time frames (formats/time_frame_numbers.h): the first that an extractor has found since set_run_info(). Any thread.
void found_frame_phase(std::uint32_t phase);
std::optional<std::uint32_t> frame_phase();

/// A consumer that has to know the run, and is told again before start() where that was not known when it was made.
class RunAware {
 public:
  virtual ~RunAware() = default;
  /// Throws SetupError where the run cannot be taken; then it is still what it was.
  virtual void take_run(const RunInfo& run) = 0;
};

/// What the run puts into every event header; checksums as by default.
formats::EventFrameSettings event_frame_settings(const RunInfo& run);
/// Its number and type alone.
void set_run(formats::EventFrameSettings& frame, const RunInfo& run);

/// When the event of a fragment was: the same for every consumer. Any thread.
formats::EventStamp event_stamp(const Fragment& fragment);

}  // namespace rodeo::readout
