// Which of many event files are one sequence of one writer, and in which order.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "formats/event_file_records.h"
#include "rodeo/ids.h"

namespace rodeo::storage {

/// What a file says of itself, as far as it decides on that.
struct FileOrigin {
  std::string path;
  std::string directory;  ///< the one that it is in, however it was named
  std::string core_name;  ///< without number and ending
  std::string guid;
  std::uint32_t file_number = 0;
  std::uint32_t run_number = 0;
  std::uint64_t bytes = 0;

  static FileOrigin of(const std::string& path, const formats::EventFileHeader& header, std::uint64_t bytes);
};

/// The files of one writer, in order.
struct WriterFiles {
  std::string name;  ///< the core name, with the directory where there are several of that name
  std::vector<FileOrigin> files;
  std::uint64_t bytes = 0;
  std::vector<std::uint32_t> absent;  ///< numbers of files between these that were not given
};

/// Files of one directory and core name are of one writer, by their numbers. Pure. Errors: data.other_run if they are of several runs;
/// data.same_file if one was given twice, or two are the same part of one writer's sequence.
Result<std::vector<WriterFiles>> by_writer(std::vector<FileOrigin> files);

/// ROBs that a file's header names (Rodeo-Links); empty for files of others.
std::set<SourceId> robs_of(const formats::EventFileHeader& header);

}  // namespace rodeo::storage
