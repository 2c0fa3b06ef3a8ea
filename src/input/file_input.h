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
  double rate_hz = 0;      ///< events per second; 0: as fast as they are taken
  bool loop = false;
  RestampFunction restamp = nullptr;  ///< looping; nullptr: provable chunks, written anew
  std::uint64_t seed = 1;             ///< of provable chunks
  bool crc = false;
  std::uint64_t memory_bytes = 32U << 20;

  /// Throws SetupError. `restamp` is looked up by the caller.
  static FileInputSettings from(const Parameters& parameters);
};

std::vector<Key> file_input_keys();

/// `type = "file"`. The file is mapped read-only; each worker walks the whole of it and takes its own links. At a rate, all links keep
/// to the same position. stop() lets every stream reach the last event that any link has begun by then, and ends there.
class FileInput final : public DataInput {
 public:
  /// Throws SetupError for a file that is not there or no recording.
  explicit FileInput(const FileInputSettings& settings);

  std::span<const Fid> links() const override { return links_.all(); }
  std::unique_ptr<DataStream> open(std::span<const Fid> links) override;
  std::unique_ptr<DataStream> open_trigger_list() override;
  void start() override;
  void stop() override;

  /// "damaged" (places where the recording itself is), "sent", "events" played by the foremost stream, and what the block
  /// decoders found wrong, by name.
  std::vector<NamedCounter> counters() const override;

  /// The recording was cut short while it is played: what comes from behind the cut is zeros.
  std::string failure() const override;

 private:
  FileInputSettings settings_;
  Recording recording_;
  Playback playback_;
  OfferedLinks links_;  // in the order of the recording's E-links
  PlayedStreams<FileStream> streams_;
};

}  // namespace rodeo::input
