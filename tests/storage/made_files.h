// Closed event files on disk for tests, with sample events of any readouts, in any order.
#pragma once

#include <string>
#include <vector>

#include "formats/temporary_directory.h"
#include "storage/event_file_sequence.h"
#include "storage/sample_file.h"

namespace rodeo::test {

struct MadeFile {
  std::string application = "readout";
  std::uint32_t run_number = 431493;
  bool named_robs = true;        ///< the file lists its ROBs
  std::uint32_t max_blocks = 0;  ///< blocks in a file of the sequence; 0: no limit
};

/// Returns the paths of the files, in order.
inline std::vector<std::string> make_files(const std::string& directory, const MadeFile& made, const SampleSettings& sample,
                                           const std::vector<std::vector<std::byte>>& events) {
  storage::EventFileSettings settings;
  settings.application = made.application;
  settings.run.run_number = made.run_number;
  settings.max_blocks = made.max_blocks;
  if (sample.wrapped)
    settings.free_strings.push_back(formats::IdsMark{formats::IdLayout{.bits = 24, .has_resets = false}}.text());
  settings.provable = formats::ProvableMark{.seed = sample.seed};
  if (made.named_robs)
    settings.free_strings.push_back("Rodeo-Links=0x00" + std::string(sample.source_id == 0x610001 ? "610001" : "610002") +
                                    ": 0x00540000+3");
  storage::EventFileSequence sequence({.directory = directory, .files = settings, .buffer_bytes = 1 << 16});
  sequence.start();
  for (const auto& event : events) {
    const std::span<const std::byte> bytes = event;
    sequence.append({&bytes, 1}, bytes.size());
  }
  sequence.close();
  std::vector<std::string> paths;
  for (const auto& file : sequence.status().files) paths.push_back(file.path);
  return paths;
}

/// Sample events with these numbers, as one readout would build them.
inline std::vector<std::vector<std::byte>> events_of(const SampleSettings& sample,
                                                     const std::vector<std::uint32_t>& numbers) {
  std::vector<std::vector<std::byte>> events;
  for (const std::uint32_t number : numbers) events.push_back(sample_event(sample, number));
  return events;
}

}  // namespace rodeo::test
