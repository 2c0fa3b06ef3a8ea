// What the records of several files of one run say together of new files that are made of them.
#pragma once

#include <optional>
#include <set>

#include "rodeo/ids.h"
#include "storage/derived_files.h"

namespace rodeo::storage {

/// Told of the header of each file. Kept are the free strings that all have, the links of every ROB, and the payload mark if all have the same one.
class JoinedRecords {
 public:
  void add(const formats::DecodedFileHeader& header);

  /// Of the new files; at least one header was added.
  const EventFileSettings& settings() const { return *settings_; }

  /// ROBs that the headers name.
  const std::set<SourceId>& robs() const { return robs_; }
  /// Every header names some.
  bool all_name_robs() const { return all_name_robs_; }
  /// Every header says that global ids never repeat within the run.
  bool all_have_global_ids() const { return all_have_global_ids_; }

 private:
  std::optional<EventFileSettings> settings_;
  std::set<SourceId> robs_;
  bool all_name_robs_ = true;
  bool all_have_global_ids_ = true;
};

}  // namespace rodeo::storage
