// EventFileInput: plays event files, so that a readout builds from them what was built before, or other things.
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
  std::uint32_t detector = 0;
  EventTiming timing = EventTiming::recorded;
  double rate_hz = 0;  ///< if not 0: timing is `rate`
  bool loop = false;
  std::uint64_t passes = 0;
  RestampFunction restamp = nullptr;
  std::uint64_t seed = 1;
  bool crc = false;
  std::uint32_t l1id_bits = 32;
  std::uint64_t memory_bytes = 32U << 20;

  /// Throws SetupError. `restamp` is looked up by the caller.
  static EventFileInputSettings from(const Parameters& parameters);
};

std::vector<Key> event_file_input_keys();

/// `type = "event_file"`. The files are mapped read-only; each worker walks all of them and takes its own links. Links are those that the files name, or
/// else those of all chunks. What was missing is missing again, what was flagged by the card has its flags. stop() lets every stream reach the last
/// event that any has begun by then, and ends there.
class EventFileInput final : public DataInput {
 public:
  /// Throws SetupError for a file that is not there or no event file, or without chunks.
  explicit EventFileInput(const EventFileInputSettings& settings);

  std::span<const Fid> links() const override { return links_.all(); }
  std::unique_ptr<DataStream> open(std::span<const Fid> links) override;
  /// L1 id, BCID and trigger type from the headers of the events. Throws std::runtime_error for a loop.
  std::unique_ptr<DataStream> open_trigger_list() override;
  void start() override;
  void stop() override;

  /// "damaged" (places in the files), "sent", "events" played by the foremost stream, "not_restamped".
  std::vector<NamedCounter> counters() const override;

  /// A file was cut short while it is played.
  std::string failure() const override;

 private:
  PlayedFiles files_;
  EventPlayback playback_;
  OfferedLinks links_;
  PlayedStreams<EventStream> streams_;
};

/// The FID of a link of which an event file says only the link id.
constexpr Fid fid_of_link_id(std::uint32_t detector, std::uint32_t link_id) {
  return Fid{Fid::kVersion << 60 | std::uint64_t{detector & 0xffU} << 52 | std::uint64_t{link_id} << 16};
}

}  // namespace rodeo::input
