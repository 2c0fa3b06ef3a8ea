// FileInput: replays a recording of FELIX blocks (software ROD paper, section V: "another data source").
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "input/file_stream.h"
#include "input/offered_links.h"
#include "input/played_streams.h"
#include "input/recording.h"
#include "rodeo/input.h"
#include "rodeo/plugin.h"

namespace rodeo::input {

struct FileInputSettings {
  std::filesystem::path file;
  Recording::Options recording;
  std::uint32_t detector = 0;
  std::uint32_t card = 0;  ///< connector id of the recorded card, in FIDs
  double rate_hz = 0;      ///< events per second; 0: as fast as the readout takes them
  bool loop = false;
  RestampFunction restamp = nullptr;  ///< rewrites chunks of a loop; nullptr: write provable chunks again
  std::uint64_t seed = 1;             ///< seed of provable chunks
  bool crc = false;
  std::uint64_t memory_bytes = 32U << 20;

  /// Reads the settings, except `restamp`, which the caller looks up. Throws SetupError.
  static FileInputSettings from(const Parameters& parameters);
};

std::vector<Key> file_input_keys();

/// `type = "file"`. The file is mapped read-only; each worker walks the whole file and takes its own links. If a rate is
/// set, all links keep the same position. After stop() every stream plays up to the last event that any link has begun, and
/// ends there.
class FileInput final : public DataInput {
 public:
  /// Throws SetupError if the file does not exist or is not a recording.
  explicit FileInput(const FileInputSettings& settings);

  std::span<const Fid> links() const override { return links_.all(); }
  std::unique_ptr<DataStream> open(std::span<const Fid> links) override;
  std::unique_ptr<DataStream> open_trigger_list() override;
  void start() override;
  void stop() override;

  /// "damaged" (damaged places of the recording itself), "sent", "events" (played by the foremost stream), and the anomalies
  /// that the block decoders found, by name.
  std::vector<NamedCounter> counters() const override;

  /// An error if the recording was cut short while it was played; bytes after the cut read as zeros. Else empty.
  std::string failure() const override;

 private:
  FileInputSettings settings_;
  Recording recording_;
  Playback playback_;
  OfferedLinks links_;  // the links in the order of the recording's E-links
  PlayedStreams<FileStream> streams_;
};

}  // namespace rodeo::input
