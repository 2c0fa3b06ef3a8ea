// Run data for every event header. The application sets them before it creates the consumers, and again if the run becomes
// known later.
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
  SourceId source_id = {0x007c0000};  ///< source id of the full event
  std::string project = "rodeo";
  std::string stream_type = "calibration";
  std::string stream_name = "readout";
  std::string readout_name = "readout";  ///< name of the process, used for files and sockets
  formats::IdLayout ids = {};            ///< layout of L1 ids, from the extractor
  formats::Numbering numbering = {};     ///< the unit of the ids; without the phase, which comes from the data
  bool emulated = false;                 ///< ors 0x80000000 to the run type
  std::optional<formats::ProvableMark> provable =
      {};  ///< rule by which the payload proves itself; files store it for `rodeo data verify`
  std::vector<std::string> free_strings = {};  ///< further strings for files
  std::vector<SourceId> robs = {};             ///< source ids of the fragments; in FULL mode one per group of links
};

/// Replaces the run data of the process. Call it before any component is created, never during a run.
void set_run_info(RunInfo info);

const RunInfo& run_info();

/// Reports the phase of the run's time frames (formats/time_frame_numbers.h). Only the first call after set_run_info()
/// counts. Any thread.
void set_frame_phase(std::uint32_t phase);
std::optional<std::uint32_t> frame_phase();

/// A consumer that must know the run. If the run was not known at construction, set_run() follows before start().
class RunAware {
 public:
  virtual ~RunAware() = default;
  /// Throws SetupError if the consumer refuses the run; the consumer then keeps its old run.
  virtual void set_run(const RunInfo& run) = 0;
};

/// The run's data for every event header, with the default checksums.
formats::EventFrameSettings event_frame_settings(const RunInfo& run);
/// Sets run number and run type only.
void apply_run(formats::EventFrameSettings& frame, const RunInfo& run);

/// The time of a fragment's event: equal for all consumers. Any thread.
formats::EventStamp event_stamp(const Fragment& fragment);

}  // namespace rodeo::readout
