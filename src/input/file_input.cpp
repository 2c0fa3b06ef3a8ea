#include "input/file_input.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "base/named_counters.h"
#include "base/sentence.h"
#include "formats/fid.h"
#include "rodeo/settings.h"

namespace rodeo::input {
namespace {

using formats::BlockCounter;

// True for the counters to report besides the chunks: anomalies, and the bytes that the maximum size cut off. Not for blocks
// without marker: every worker meets them, and `damaged` counts them.
bool tells(BlockCounter counter) {
  using enum BlockCounter;
  return counter == unfinished || counter == given_up || counter == cut_bytes ||
         (is_anomaly(counter) && counter != bad_marker);
}

}  // namespace

FileInput::FileInput(const FileInputSettings& settings)
    : settings_(settings), recording_(settings.file, settings.recording) {
  playback_.rate_hz = settings.rate_hz;
  playback_.loop = settings.loop;
  playback_.restamp = settings.restamp;
  playback_.provable = formats::Provable(settings.seed, settings.crc, settings.recording.l1id.bits);
  playback_.memory_bytes = settings.memory_bytes;
  for (const std::uint16_t elink : recording_.elinks())
    links_.add(formats::fid_of_card_elink(settings.detector, settings.card, elink));
  base::log_info("{}: {}, {} of {} in {}", settings.file.string(), base::counted(links_.all().size(), "link"),
                 base::counted(recording_.chunks(), "chunk"), base::counted(recording_.events(), "event"),
                 base::counted(recording_.blocks().size() / recording_.format().block_bytes, "block"));
}

std::unique_ptr<DataStream> FileInput::open(std::span<const Fid> links) {
  std::vector<std::uint16_t> elinks;
  std::vector<std::uint32_t> link_ids;
  for (const std::size_t position : links_.select(links, settings_.file.string())) {
    elinks.push_back(recording_.elinks()[position]);
    link_ids.push_back(links_.all()[position].default_link_id());
  }
  return streams_.add(std::make_unique<FileStream>(recording_, playback_, elinks, link_ids));
}

std::unique_ptr<DataStream> FileInput::open_trigger_list() {
  const auto& elink = settings_.recording.trigger_elink;
  if (!elink) return nullptr;
  if (settings_.loop)
    throw std::runtime_error(
        "A loop cannot rewrite the trigger list of a recording: play it once, or without trigger_elink.");
  const std::uint32_t link_id = 0;
  return streams_.add_list(
      std::make_unique<FileStream>(recording_, playback_, std::span(&*elink, 1), std::span(&link_id, 1), true));
}

void FileInput::start() { start_now(playback_.start_ns); }

// Streams stop at the place of the foremost stream, then end with the last event that any link has begun.
void FileInput::stop() {
  if (playback_.planned.load()) return;
  playback_.plan = plan_stop(recording_, streams_.hold(playback_.hold_at));
  playback_.planned.store(true, std::memory_order_release);
}

std::vector<NamedCounter> FileInput::counters() const {
  std::uint64_t sent = 0;
  std::uint64_t sent_bytes = 0;
  std::uint64_t not_restamped = 0;
  std::uint64_t foremost = 0;
  std::vector<NamedCounter> anomalies;
  for (const auto& stream : streams_.of_links()) {
    sent += stream->counters().chunks;
    sent_bytes += stream->counters().bytes;
    not_restamped += stream->not_restamped();
    foremost = std::max(foremost, stream->played_bytes());
    for (const NamedCounter& one : base::named_counters(stream->block_counters(), formats::kBlockCounterInfo, tells))
      base::add_counter(anomalies, one);
  }
  const double events = static_cast<double>(foremost) / static_cast<double>(recording_.blocks().size()) *
                        static_cast<double>(recording_.events());
  std::vector<NamedCounter> all{{"sent", sent},
                                {"sent_bytes", sent_bytes},
                                {"events", static_cast<std::uint64_t>(events)},
                                {"not_restamped", not_restamped}};
  std::uint64_t damaged = 0;
  for (const NamedCounter& one : recording_.damage()) damaged += one.value;
  all.push_back({"damaged", damaged});
  all.insert(all.end(), anomalies.begin(), anomalies.end());
  return all;
}

std::string FileInput::failure() const { return failure_of(recording_.check()); }

namespace {

/// The caller looks up the re-stamping function by name.
struct FileInputKeys : FileInputSettings {
  std::string restamp_name = "provable";
};

const Settings<FileInputKeys>& file_input_table() {
  using K = FileInputKeys;
  using R = Recording::Options;
  static const Settings<K> table{
      setting(&K::file, "file", "The recording: a file of FELIX blocks.", {.required = true}),
      setting(&K::detector, "detector", "Detector id in the FIDs of the links.", {.maximum = 255}),
      setting(&K::card, "card", "Connector id in the FIDs of the links.", {.maximum = 65535}),
      setting(&K::recording, {setting(&R::max_chunk_bytes, "max_chunk", "Longer chunks are cut and marked.",
                                      {.minimum = 64, .maximum = 1 << 28, .unit = Unit::bytes}),
                              setting(&R::trigger_elink, "trigger_elink",
                                      "E-link number (of block headers) that carries the trigger's own list. -1 means none.",
                                      {.maximum = 2047})}),
      setting(&K::rate_hz, "rate",
              "Events per second; counted on the link with most chunks, or on the trigger's list. 0: as fast as the "
              "readout takes them.",
              {.minimum = 0, .maximum = 1e9, .unit = Unit::hertz}),
      setting(&K::loop, "loop", "Play again and again, with L1 ids that continue."),
      setting(&K::restamp_name, "restamp",
              "How a loop rewrites chunks. provable: writes Rodeo's test chunks again; else the name of a re-stamping "
              "function."),
      setting(&K::recording,
              {setting(&R::l1id, {setting(&L1IdField::offset, "l1id_offset", "Byte of a chunk at which its L1 id begins.",
                                          {.maximum = 65535}),
                                  setting(&L1IdField::bits, "l1id_bits",
                                          "Bits of the L1 id that chunks carry: 32 (ECR counter and 24 bits), or that many "
                                          "low bits.",
                                          {.minimum = 4, .maximum = 32})})}),
      setting(&K::seed, "seed", "Seed of provable chunks.", {.maximum = 9e15}),
      setting(&K::crc, "crc", "Provable chunks end with a CRC-32."),
      setting(&K::memory_bytes, "memory", "Memory for the rewritten chunks of a loop, per worker.",
              {.minimum = 1 << 20, .maximum = 1e12, .unit = Unit::bytes}),
  };
  return table;
}

}  // namespace

FileInputSettings FileInputSettings::from(const Parameters& parameters) { return file_input_table().read(parameters); }

std::vector<Key> file_input_keys() { return file_input_table().keys(); }

}  // namespace rodeo::input
