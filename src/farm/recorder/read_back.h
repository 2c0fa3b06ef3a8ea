// At the start of a recorder: recovers files that were left open, and reads the ids in the files of its run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "farm/recorder/recorded_events.h"

namespace rodeo::farm {

struct RunFiles {
  std::filesystem::path directory;
  std::string project;
  std::string recorder;
  std::uint32_t run_number = 0;
};

/// Adds the ids of each file of the run, with the stream in its name, and of files that were moved to a target. Recovers and
/// then removes each `.writing` file, also one without events. Blocks while it reads the headers of all events. Throws
/// SetupError if a file cannot be read or recovered, because it may have an acknowledged event.
void read_back_ids(const RunFiles& run, RecordedEvents& ids, const std::function<void(std::string)>& say);

/// An event of a file, and its number of streams; each stream has a copy.
struct RecordedCopy {
  std::uint64_t id = 0;
  std::uint64_t copies = 1;
};
/// Returns the events of a closed file. Error: the file is not an event file, or is damaged.
Result<std::vector<RecordedCopy>> copies_in_file(const std::filesystem::path& file);

/// Returns the path at which the ids of a file stay after the file was moved away.
std::filesystem::path remembered_ids_path(const std::filesystem::path& file);
/// Writes the ids of a file, all or none. Error file.write.
Result<void> remember_ids(const std::filesystem::path& file);

/// Returns the files of a run and a recorder in a directory, by name; `ending` is ".data" or ".writing". A missing directory
/// has no files. Error file.open: the directory cannot be read.
Result<std::vector<std::filesystem::path>> files_of_run(const RunFiles& run, const std::string& ending);

}  // namespace rodeo::farm
