#include "farm/recorder/configuration.h"

#include "process/configuration.h"
#include "settings/effective.h"

namespace rodeo::farm {

const Settings<RecorderKeys>& recorder_settings() {
  using R = RecorderKeys;
  using F = FileSettings;
  constexpr SettingRules kBytes{.unit = Unit::bytes};
  static const Settings<FileSettings> files{
      setting(&F::directory, "directory",
              "Directory of the event files; made if it is missing. Each recorder needs its own: it recovers files that "
              "were left open there."),
      setting(&F::project, "project", "First part of the names of files."),
      setting(&F::max_file_bytes, "max_file_size",
              "A file is closed, and the next one begun, before it becomes larger; only a single event may be larger. 0: no "
              "limit.",
              {.maximum = 1e15, .unit = Unit::bytes}),
      setting(&F::max_file_events, "max_file_events", "A file is closed after this number of events. 0: no limit."),
      setting(&F::min_free_bytes, "min_free",
              "Space that stays free on the file system: events are refused before it is used.", kBytes),
      setting(&F::sync, "sync", {{"each", SyncPolicy::each}, {"time", SyncPolicy::by_time}, {"bytes", SyncPolicy::by_bytes}},
              "When events are flushed to the disk, and then acknowledged: each at once (events that come while the disk is "
              "busy go together), after sync_interval, or after sync_bytes or sync_interval."),
      setting(&F::sync_interval, "sync_interval", "How long an event may wait for its flush; not with sync = \"each\"."),
      setting(&F::sync_bytes, "sync_bytes", "Bytes that may wait for a flush, with sync = \"bytes\".", kBytes),
      setting(
          &F::lumi_block_linger, "lumi_block_linger",
          "Files of a luminosity block are closed when a later block has begun and no event came for them in this time."),
      setting(&F::retry_interval, "retry_interval", "A disk that was full or failed is tried again after this time."),
      setting(&F::most_open, "max_open_files",
              "Files of streams and luminosity blocks that are open at a time; each has buffers of its own.",
              {.minimum = 2, .maximum = 1024}),
      setting(&F::buffer_bytes, "buffer", "Size of a write.", {.minimum = 65536, .maximum = 1 << 30, .unit = Unit::bytes}),
      setting(&F::buffers, "buffers", "Buffers of each file that may wait for the disk.", {.minimum = 2, .maximum = 1024}),
      setting(&F::direct, "direct_io", "Write past the page cache where the file system can."),
      setting(&F::payload, "payload",
              "The proof of the payload, as `rodeo data info` shows it for files of the readouts: provable seed=1 crc=0. "
              "Empty: none."),
  };
  static const Settings<RecorderKeys> settings{
      setting(&R::name, "name",
              "Name of the process, of its service on the bus and of its control socket; it is also part of file names."),
      setting(&R::run_number, "run_number", "Run that is recorded, unless run control gives it (--hold).",
              {.minimum = 1, .maximum = 0x7fffffff}),
      setting(&R::files, files),
      setting(&R::network, network_settings()),
      setting(&R::most_clients, "most_clients", "Filter nodes and supervisors that may be connected at a time.",
              {.minimum = 1, .maximum = 65535}),
      setting(&R::control, "control",
              "Listens on a control socket in the runtime directory, for run control and `rodeo top`."),
      process::stop_limit_setting<R>(),
  };
  return settings;
}

const Settings<TargetSettings>& target_settings() {
  using T = TargetSettings;
  static const Settings<T> settings{
      setting(&T::directory, "directory", "Closed files are copied to this directory. Empty: see copy_command."),
      setting(&T::copy_command, "copy_command",
              "Program with its arguments that copies a file; {file} is its path, {name} its name: [\"rsync\", \"{file}\", "
              "\"host:/data/{name}\"]. No shell is involved. Empty, and no directory: files stay where they are."),
      setting(&T::checksum_command, "checksum_command",
              "Program with its arguments that prints the SHA-256 of the copy, first on its line: [\"ssh\", \"host\", "
              "\"sha256sum\", "
              "\"/data/{name}\"]."),
      setting(&T::remove, "remove", "Remove the file here once its copy has the same checksum."),
      setting(&T::retry_interval, "retry_interval", "A copy that failed is tried again after this time."),
      setting(&T::timeout, "timeout", "A program that has not ended after this time is killed, and the copy has failed."),
      setting(&T::linger, "linger",
              "How long the end of a run waits for copies, within stop_limit; the other files are copied in the next life "
              "of the recorder."),
  };
  return settings;
}

std::expected<RecorderConfiguration, settings::ConfigurationErrors> configure_recorder(
    const settings::Configuration& configuration) {
  const settings::Table& recorder = *configuration.table("farm.recorder");
  const settings::Table& target = *recorder.table("target");
  const settings::Table& metrics = *recorder.table("metrics");
  settings::ConfigurationErrors errors;
  process::refuse_other_than_plain_name(recorder, "name", errors);
  process::refuse_other_than_plain_name(recorder, "project", errors);
  process::refuse_bad_listen(metrics, errors);
  const RecorderKeys keys = recorder_settings().read(recorder.parameters());
  RecorderConfiguration out{
      .settings = keys, .control_socket = keys.control, .metrics_listen = metrics.parameters().text("listen")};
  out.settings.target = target_settings().read(target.parameters());
  const TargetSettings& to = out.settings.target;
  if (!keys.files.payload.empty() && !formats::ProvableMark::parse(keys.files.payload))
    errors.push_back({"config.bad_value", "Rodeo does not know this `payload`", recorder.where(),
                      "as `rodeo data info` shows it: provable seed=1 crc=0"});
  if (!to.directory.empty() && !to.copy_command.empty())
    errors.push_back(
        {"config.bad_value", "`directory` and copy_command exclude each other", target.where(), "leave one of them out"});
  if (to.copy_command.empty() != to.checksum_command.empty())
    errors.push_back(
        {"config.bad_value", "copy_command and checksum_command belong together", target.where(), "give both, or neither"});
  if (!errors.empty()) return std::unexpected(std::move(errors));
  out.configuration_sha256 = settings::configuration_sha256(configuration);
  return out;
}

}  // namespace rodeo::farm
