// EventFileInput: plays event files, so that a readout can build from their chunks again, with the same or other settings.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "input/event_playback.h"
#include "input/event_stream.h"
#include "input/offered_links.h"
#include "input/played_streams.h"
#include "rodeo/input.h"
#include "rodeo/plugin.h"

namespace rodeo::input {

struct EventFileInputSettings {
  std::filesystem::path file;
  bool sequence = true;
  std::vector<std::uint32_t> robs = {};  ///< source ids of the ROBs to play; empty: all
  std::uint32_t detector = 0;
  EventTiming timing = EventTiming::recorded;
  double rate_hz = 0;  ///< not 0: play at this rate instead of `timing`
  bool loop = false;
  std::uint64_t passes = 0;
  RestampFunction restamp = nullptr;
  std::uint64_t seed = 1;
  bool crc = false;
  std::uint32_t l1id_bits = 32;
  std::uint64_t memory_bytes = 32U << 20;

  /// Reads the settings, except `restamp`, which the caller looks up. Throws SetupError.
  static EventFileInputSettings from(const Parameters& parameters);
};

std::vector<Key> event_file_input_keys();

/// `type = "event_file"`. The files are mapped read-only; each worker walks all of them and takes its own links. The links
/// are those in the file headers, else those of all chunks; ROB and link id name a link. Chunks that are missing in the file
/// are missing again; the card's flags are kept. After stop() every stream plays up to the last event that any stream has
/// begun, and ends there.
class EventFileInput final : public DataInput {
 public:
  /// Throws SetupError if the file does not exist, is not an event file, or has no chunks.
  explicit EventFileInput(const EventFileInputSettings& settings);

  std::span<const Fid> links() const override { return links_.all(); }
  std::unique_ptr<DataStream> open(std::span<const Fid> links) override;
  /// L1 id, BCID and trigger type from the headers of the events. Throws std::runtime_error for a loop.
  std::unique_ptr<DataStream> open_trigger_list() override;
  void start() override;
  void stop() override;

  /// "damaged" (places in the files), "sent", "events" (played by the foremost stream), "not_restamped".
  std::vector<NamedCounter> counters() const override;

  /// An error if a file was cut short while it was played; else empty.
  std::string failure() const override;

 private:
  PlayedFiles files_;
  EventPlayback playback_;
  OfferedLinks links_;
  PlayedStreams<EventStream> streams_;
};

/// The FID of a link from the link id in an event file.
constexpr Fid fid_of_link_id(std::uint32_t detector, std::uint32_t link_id) {
  return Fid{Fid::kVersion << 60 | std::uint64_t{detector & 0xffU} << 52 | std::uint64_t{link_id} << 16};
}

}  // namespace rodeo::input
