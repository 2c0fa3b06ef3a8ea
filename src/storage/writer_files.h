// Groups event files into sequences, one for each writer, and orders them.
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

/// The data of a file that determine its group.
struct FileOrigin {
  std::string path;
  std::string directory;  ///< directory of the file, independent of the spelling of the path
  std::string core_name;  ///< core name without number and ending
  std::string guid;
  std::uint32_t file_number = 0;
  std::uint32_t run_number = 0;
  std::uint64_t bytes = 0;

  static FileOrigin of(const std::string& path, const formats::EventFileHeader& header, std::uint64_t bytes);
};

/// The files of one writer, in order.
struct WriterFiles {
  std::string name;  ///< the core name, with the directory if several writers have that name
  std::vector<FileOrigin> files;
  std::uint64_t bytes = 0;
  std::vector<std::uint32_t> absent;  ///< numbers of missing files between the given ones
};

/// Files with the same directory and core name belong to one writer, ordered by number. Pure. Errors: data.other_run if the
/// files are of several runs; data.same_file if a file was given twice, or two files are the same part of one writer's
/// sequence.
Result<std::vector<WriterFiles>> by_writer(std::vector<FileOrigin> files);

/// The ROBs in a file's header (Rodeo-Links); empty for foreign files.
std::set<SourceId> robs_of(const formats::EventFileHeader& header);

}  // namespace rodeo::storage
