#include "readout/setting_tables.h"

#include "process/configuration.h"

namespace rodeo::readout {

const std::vector<std::pair<std::string, std::uint32_t>>& run_types() {
  static const std::vector<std::pair<std::string, std::uint32_t>> types{
      {"physics", 0}, {"calibration", 1}, {"cosmics", 2}, {"test", 0xf}};
  return types;
}

const Settings<RunKeys>& run_settings() {
  using R = RunInfo;
  static const Settings<RunKeys> settings{
      setting(&R::run_number, "number",
              "Run number: 31 bits, as in ROD headers. 0: one more than the highest in the directories of the file "
              "writers.",
              {.maximum = 0x7fffffff}),
      setting(&R::run_type, "type", run_types(), "Kind of run, as in the ATLAS event header."),
      setting(&R::lumi_block, "lumi_block", "Luminosity block.", {.maximum = 0xffff}),
      setting(&R::source_id, "source_id",
              "Source id of the full event header. Subdetector 0x7c is the HLT, as in events of the experiment; 0 "
              "only says "
              "that it is a full event."),
      setting(&R::project, "project", "Project tag: the first part of a file's name. Letters, digits, `_`, `-` and `.`."),
      setting(&R::stream_type, "stream_type", "Type of the stream, in the stream tag and in file names.",
              {.choices = {"physics", "calibration", "reserved", "debug", "unknown", "express", "monitoring"}}),
      setting(&R::stream_name, "stream",
              "Name of the stream, in the stream tag and in file names. Letters, digits, `_`, `-` and `.`."),
  };
  return settings;
}

const Settings<ProcessKeys>& process_settings() {
  using P = ProcessKeys;
  static const Settings<P> settings{
      setting(&P::name, "name", "Name of the process; also in the name of its control socket and in its files."),
      setting(&P::plugins, "plugins",
              "Plug-in libraries to load, by name (libNAME.so in the search path) or by path (with a /, relative to this "
              "file)."),
      setting(&P::plugin_directories, "plugin_directories",
              "Directories to look for plug-ins in, relative to this file; searched after RODEO_PLUGIN_PATH."),
      setting(&P::control, "control",
              "Listens on a control socket in the runtime directory, for `rodeo readout status`, `link` and `stop`."),
      setting(&P::fail_on_loss, "fail_on_loss",
              "Exit status 6 if a larger fraction of chunks is lost, of fragments incomplete, or of events not written; 0: "
              "if anything is lost, 1: never.",
              {.minimum = 0, .maximum = 1}),
      process::stop_limit_setting<P>(),
  };
  return settings;
}

const Settings<RobSettings>& rob_settings() {
  using R = RobSettings;
  static const Settings<R> settings{
      setting(&R::source_id, "source_id", "Source id of the ROB; unique in the readout.", {.required = true}),
      setting(&R::links, "links", "Links of the ROB: FIDs, or ranges FID+N. Left out: every link of the input."),
      setting(&R::link_ids, "link_ids",
              "Detector resource ids for the chunk headers, one per link. Left out: bits 47 to 16 of the FID."),
      setting(&R::links_per_group, "links_per_group",
              "FULL mode: this many neighbours in `links` form a group and carry its events in turn. 0: all of them form "
              "one.",
              {.maximum = 65535}),
  };
  return settings;
}

const Settings<LinkPolicySettings>& link_policy_settings() {
  using L = LinkPolicySettings;
  static const Settings<L> settings{
      setting(&L::remove_after_events, "remove_after_events",
              "Removes a link after this many consecutive events without it, each of which costs its time-out. 0: never."),
      setting(&L::restore, "restore", "Restores a link that was removed by this policy when it delivers again."),
  };
  return settings;
}

}  // namespace rodeo::readout
