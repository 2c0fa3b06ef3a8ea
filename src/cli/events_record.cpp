// `rodeo events record`: writes the events of a consumer `publish` from the network to data files.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>

#include "base/units.h"
#include "cli/events.h"
#include "formats/full_event.h"
#include "process/stop_signals.h"
#include "storage/event_file_sequence.h"

namespace rodeo::cli {
namespace {

using readout::EventSubscriber;
using readout::Sample;

struct EventsRecordOptions {
  std::string directory;
  readout::EventSubscriberSettings from{.name = "events-record", .monitor = false};
  std::uint64_t count = 0;
  OutputFormat format = OutputFormat::table;
};

/// One sequence of files for each run.
class RunFiles {
 public:
  RunFiles(std::string directory, std::string application)
      : directory_(std::move(directory)), application_(std::move(application)) {}

  Result<void> write(std::span<const std::byte> event) {
    const auto header = formats::decode_full_event(event);
    if (!header || header->words.bytes().size() != event.size()) {
      ++no_events_;
      return {};
    }
    if (!files_ || header->run_number != run_) RODEO_TRY(begin(*header));
    if (files_->append({&event, 1}, event.size()) == storage::EventFileSequence::Outcome::taken) return {};
    return failure();
  }

  Result<void> close() {
    if (!files_) return {};
    files_->close();
    const storage::EventFileSequence::Status status = files_->status();
    events_ += status.events - status.events_lost;
    for (const auto& file : status.files) bytes_ += file.bytes;
    count_ += status.files.size();
    const bool failed = !status.failure.empty();
    const auto why = failed ? failure() : Result<void>{};
    files_.reset();
    return why;
  }

  std::uint64_t events() const { return events_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t files() const { return count_; }
  std::uint64_t no_events() const { return no_events_; }

 private:
  Result<void> begin(const formats::FullEventView& first) {
    RODEO_TRY(close());
    run_ = first.run_number;
    storage::EventFileSequence::Settings settings{.directory = directory_};
    settings.files = {.project = "rodeo",
                      .stream_type = "calibration",
                      .stream_name = "published",
                      .application = application_,
                      .lumi_block = first.lumi_block,
                      .max_bytes = std::uint64_t{2} << 30};
    settings.files.run.run_number = run_;
    settings.disk.min_free_bytes = 64 << 20;
    try {
      files_.emplace(std::move(settings));
      files_->start();
    } catch (const SetupError& error) {
      files_.reset();
      return std::unexpected(error.error());
    }
    return {};
  }

  std::unexpected<Error> failure() const {
    const storage::EventFileSequence::Status status = files_->status();
    return std::unexpected(Error{status.code, status.failure});
  }

  const std::string directory_;
  const std::string application_;
  std::optional<storage::EventFileSequence> files_;
  std::uint32_t run_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t count_ = 0;
  std::uint64_t no_events_ = 0;
};

Result<ExitCode> record(const EventsRecordOptions& options) {
  EventSubscriber subscriber = RODEO_TRY(EventSubscriber::subscribe(options.from));
  RunFiles files(options.directory, subscriber.stream());
  process::ignore_write_signals();
  const process::StopSignals signals;
  Sample sample;
  std::uint64_t taken = 0;
  for (;;) {
    if (signals.stop_requested()) subscriber.leave();
    const auto outcome = RODEO_TRY(subscriber.next(sample, std::chrono::milliseconds(100)));
    if (outcome == EventSubscriber::Outcome::end) break;
    if (outcome == EventSubscriber::Outcome::nothing) continue;
    RODEO_TRY(files.write(sample.event));
    if (++taken == options.count) break;
  }
  RODEO_TRY(files.close());
  Properties p;
  p.add("stream", "stream", subscriber.stream());
  p.add("events", "events", files.events());
  p.add("files", "files", files.files());
  p.add("size", "size_bytes", Cell(files.bytes(), base::format_size(files.bytes())));
  p.add("lost", "lost", subscriber.lost());
  p.add("no events", "no_events", files.no_events());
  p.print(options.format);
  return subscriber.lost() + files.no_events() > 0 ? ExitCode::partial : ExitCode::done;
}

}  // namespace

void add_events_record(Command& events) {
  auto options = std::make_shared<EventsRecordOptions>();
  Command& verb = events.verb("record", "Writes the events that a readout publishes on the network to data files");
  verb.example("rodeo events record files --from readout.publish",
               "until the run or Ctrl-C ends it; then: rodeo data verify files/*");
  verb.example("rodeo events record files --monitor -n 1000", "1000 events, and the readout never waits for them");
  verb.option("DIR", options->directory, "Directory of the files; created if missing").required();
  verb.option("-n,--events", options->count, "End after N events; 0: with the run or Ctrl-C")
      .value_name("N")
      .renamed_from("--count");
  verb.flag("--monitor", options->from.monitor, "Lose events rather than delay the readout");
  add_event_source(verb, options->from);
  verb.output(options->format);
  verb.paragraph(
      "The readout needs a consumer `publish`. It waits for this command, which takes every event: a disk that is too slow "
      "causes dead time of the readout. Each run gets its own files.");
  verb.paragraph("Exit status 6: some events did not arrive, or a message was not an event.");
  verb.run([options] { return record(*options); });
}

}  // namespace rodeo::cli
