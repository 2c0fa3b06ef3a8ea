// Combines the records of several files of one run for the new files that are made from them.
#pragma once

#include <optional>
#include <set>

#include "rodeo/ids.h"
#include "storage/derived_files.h"

namespace rodeo::storage {

/// Receives the header of each file. Keeps the free strings common to all files, the links of every ROB, and the payload
/// mark if all files have the same one.
class JoinedRecords {
 public:
  void add(const formats::DecodedFileHeader& header);

  /// The settings for the new files; at least one header must have been added.
  const EventFileSettings& settings() const { return *settings_; }

  /// All ROBs that the headers name.
  const std::set<SourceId>& robs() const { return robs_; }
  /// True if every header names ROBs.
  bool all_name_robs() const { return all_name_robs_; }
  /// True if every header states that global ids never repeat within the run.
  bool all_have_global_ids() const { return all_have_global_ids_; }

 private:
  std::optional<EventFileSettings> settings_;
  std::set<SourceId> robs_;
  bool all_name_robs_ = true;
  bool all_have_global_ids_ = true;
};

}  // namespace rodeo::storage
