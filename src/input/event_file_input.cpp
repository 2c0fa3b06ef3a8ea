#include "input/event_file_input.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/sentence.h"
#include "rodeo/settings.h"

namespace rodeo::input {

EventFileInput::EventFileInput(const EventFileInputSettings& settings)
    : files_(settings.file, settings.sequence, settings.robs) {
  playback_.timing = settings.rate_hz > 0 ? EventTiming::rate : settings.timing;
  playback_.rate_hz = settings.rate_hz;
  playback_.loop = settings.loop;
  playback_.passes = settings.passes;
  playback_.restamp = settings.restamp;
  playback_.provable = formats::Provable(settings.seed, settings.crc, settings.l1id_bits);
  playback_.memory_bytes = settings.memory_bytes;
  for (const PlayedLink& link : files_.links()) links_.add(fid_of_link_id(settings.detector, link.link_id));
  base::log_info("{}: {}, {} in {}", settings.file.string(), base::counted(links_.all().size(), "link"),
                 base::counted(files_.blocks(), "event"), base::counted(files_.files().size(), "file"));
}

std::unique_ptr<DataStream> EventFileInput::open(std::span<const Fid> links) {
  std::vector<PlayedLink> played;
  for (const std::size_t position : links_.select(links, files_.files().front().path.string()))
    played.push_back(files_.links()[position]);
  return streams_.add(std::make_unique<EventStream>(files_, playback_, played));
}

std::unique_ptr<DataStream> EventFileInput::open_trigger_list() {
  if (playback_.loop)
    throw std::runtime_error(
        "A loop cannot rewrite the triggers of an event file: play it once, or without the trigger list.");
  return streams_.add_list(std::make_unique<EventStream>(files_, playback_, std::span<const PlayedLink>{}));
}

void EventFileInput::start() { start_now(playback_.start_ns); }

// Streams stop at the place of the foremost stream, then end with the last event that any of them has begun.
void EventFileInput::stop() {
  if (playback_.planned.load()) return;
  streams_.hold(playback_.hold_at);
  playback_.last.store(streams_.largest(std::int64_t{-1}, &EventStream::highest));
  playback_.planned.store(true, std::memory_order_release);
}

std::vector<NamedCounter> EventFileInput::counters() const {
  std::uint64_t sent = 0;
  std::uint64_t sent_bytes = 0;
  std::uint64_t not_restamped = 0;
  std::uint64_t events = 0;
  for (const auto& stream : streams_.of_links()) {
    sent += stream->counters().chunks;
    sent_bytes += stream->counters().bytes;
    not_restamped += stream->not_restamped();
    events = std::max(events, stream->played_events());
  }
  return {{"sent", sent},
          {"sent_bytes", sent_bytes},
          {"events", events},
          {"not_restamped", not_restamped},
          {"damaged", files_.damaged()}};
}

std::string EventFileInput::failure() const { return failure_of(files_.check()); }

namespace {

/// The caller looks up the re-stamping function by name.
struct EventFileInputKeys : EventFileInputSettings {
  std::string timing_name = "recorded";
  std::string restamp_name = "provable";
};

const Settings<EventFileInputKeys>& event_file_input_table() {
  using K = EventFileInputKeys;
  static const Settings<K> table{
      setting(&K::file, "file", "An event file of a file writer.", {.required = true}),
      setting(&K::sequence, "sequence", "Play the next files of the sequence, too: ._0002 after ._0001."),
      setting(&K::robs, "robs",
              "Source ids of the ROBs to play. Empty: all. Needed if links of two ROBs have the same id: an input plays one "
              "of them."),
      setting(&K::detector, "detector", "Detector id in the FIDs of the links; event files hold only link ids.",
              {.maximum = 255}),
      setting(&K::timing_name, "timing",
              "When events come. recorded: with the time differences of the file; fast: as fast as the readout takes "
              "them.",
              {.choices = {"recorded", "fast"}}),
      setting(&K::rate_hz, "rate", "Events per second, instead of `timing`. 0: `timing` applies.",
              {.minimum = 0, .maximum = 1e9, .unit = Unit::hertz}),
      setting(&K::loop, "loop", "Play again and again, with L1 ids that continue."),
      setting(&K::passes, "passes", "How often a loop plays the files. 0: until the run ends.", {.maximum = 9e15}),
      setting(&K::restamp_name, "restamp",
              "How a loop rewrites chunks. provable: writes Rodeo's test chunks again; else the name of a re-stamping "
              "function."),
      setting(&K::l1id_bits, "l1id_bits", "Bits of the L1 id that provable chunks carry.", {.minimum = 4, .maximum = 32}),
      setting(&K::seed, "seed", "Seed of provable chunks.", {.maximum = 9e15}),
      setting(&K::crc, "crc", "Provable chunks end with a CRC-32."),
      setting(&K::memory_bytes, "memory", "Memory for chunks that the readout has not released, per worker.",
              {.minimum = 1 << 20, .maximum = 1e12, .unit = Unit::bytes}),
  };
  return table;
}

}  // namespace

EventFileInputSettings EventFileInputSettings::from(const Parameters& parameters) {
  EventFileInputKeys keys = event_file_input_table().read(parameters);
  keys.timing = keys.timing_name == "fast" ? EventTiming::fast : EventTiming::recorded;
  return keys;
}

std::vector<Key> event_file_input_keys() { return event_file_input_table().keys(); }

}  // namespace rodeo::input
