// What a recorder that is started again finds in its directory: the ids that files of its run have, after those that were left open are recovered.
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

struct ReadBack {
  std::filesystem::path directory;
  std::string project;
  std::string recorder;
  std::uint32_t run_number = 0;
};

/// Adds the ids of every file of the run, with the stream that its name says, and of files that were moved to a target. A `.writing` file is recovered and
/// then removed, as is one in which no event is. Blocks for as long as reading the headers of all events takes. Throws SetupError where an event that may
/// have been acknowledged could be missed: a file that cannot be read or recovered.
void read_back_ids(const ReadBack& what, RecordedEvents& ids, const std::function<void(std::string)>& say);

/// An event of a file, and how many streams it has, each with a copy.
struct RecordedCopy {
  std::uint64_t id = 0;
  std::uint64_t copies = 1;
};
/// The events of a closed file. Error: it is no event file, or is damaged.
Result<std::vector<RecordedCopy>> copies_in_file(const std::filesystem::path& file);

/// Where the ids of a file are remembered once it has been moved away.
std::filesystem::path remembered_ids_path(const std::filesystem::path& file);
/// Writes them there, whole or not at all. Error file.write.
Result<void> remember_ids(const std::filesystem::path& file);

/// Files of a run and a recorder in a directory, by their names; `ending`: ".data" or ".writing". A directory that is not there has none. Error file.open: it
/// cannot be read.
Result<std::vector<std::filesystem::path>> files_of_run(const ReadBack& what, const std::string& ending);

}  // namespace rodeo::farm
