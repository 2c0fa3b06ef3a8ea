#include "control/tables.h"

#include <algorithm>

#include "control/emulator_settings.h"
#include "control/network_tables.h"
#include "settings/toml_file.h"

namespace rodeo::control {

using settings::ComponentKind;
using settings::read_toml_file;

namespace {

using Form = TableDeclaration::Form;

TableDeclaration run_table() {
  return {.path = "run",
          .help = "What the headers of events and files say of the run.",
          .keys = {
              {.name = "number",
               .type = KeyType::integer,
               .fallback = "0",
               .help = "Run number: 31 bits, as ROD headers have it. 0: the next that no file in the directories of the "
                       "file writers has.",
               .minimum = 0,
               .maximum = 0x7fffffff},
              {.name = "type",
               .type = KeyType::choice,
               .fallback = "test",
               .help = "Kind of run, as in the ATLAS event header.",
               .choices = {"physics", "calibration", "cosmics", "test"}},
              {.name = "lumi_block",
               .type = KeyType::integer,
               .fallback = "1",
               .help = "Luminosity block.",
               .minimum = 0,
               .maximum = 0xffff},
              {.name = "source_id",
               .type = KeyType::source_id,
               .fallback = "0x007c0000",
               .help = "Source id of the full event header. Subdetector 0x7c is the HLT, by which events of the experiment "
                       "come; 0 says no more than that it is a full event."},
              {.name = "project",
               .type = KeyType::text,
               .fallback = "rodeo",
               .help = "Project tag: the first part of a file's name. Letters, digits, `_`, `-` and `.`."},
              {.name = "stream_type",
               .type = KeyType::choice,
               .fallback = "calibration",
               .help = "Type of the stream, in the stream tag and in file names.",
               .choices = {"physics", "calibration", "reserved", "debug", "unknown", "express", "monitoring"}},
              {.name = "stream",
               .type = KeyType::text,
               .fallback = "readout",
               .help = "Name of the stream, in the stream tag and in file names. Letters, digits, `_`, `-` and `.`."},
          }};
}

}  // namespace

std::vector<TableDeclaration> system_tables() {
  std::vector<TableDeclaration> tables{
      run_table(),
      {.path = "readout",
       .help = "One software ROD process: an input, a builder for each ROB, and the consumers that fragments pass through.",
       .keys = {{.name = "name",
                 .type = KeyType::text,
                 .fallback = "readout",
                 .help = "Name of the process: names its control socket, and stands in its files."},
                {.name = "plugins",
                 .type = KeyType::text_list,
                 .fallback = "[]",
                 .help = "Plug-in libraries to load, by name (libNAME.so in the search path) or by path (with a /, relative "
                         "to this file)."},
                {.name = "plugin_directories",
                 .type = KeyType::text_list,
                 .fallback = "[]",
                 .help = "Directories to look for plug-ins in, relative to this file; searched after RODEO_PLUGIN_PATH."},
                {.name = "control",
                 .type = KeyType::boolean,
                 .fallback = "true",
                 .help =
                     "Listens on a control socket in the runtime directory, for `rodeo readout status`, `link` and `stop`."},
                {.name = "fail_on_loss",
                 .type = KeyType::real,
                 .fallback = "1",
                 .help = "Exit status 6 if a larger fraction of chunks is lost, of fragments incomplete, or of events not "
                         "written; 0: "
                         "if anything is lost, 1: never.",
                 .minimum = 0,
                 .maximum = 1}}},
      {.path = "readout.input", .help = "Where chunks come from.", .component = ComponentKind::input},
      {.path = "readout.builder",
       .help = "How chunks become fragments. One builder of this type is made for each ROB.",
       .component = ComponentKind::builder,
       .default_type = "gbt"},
      {.path = "readout.extractor",
       .help = "What reads trigger information out of a chunk. Made once for each worker.",
       .component = ComponentKind::extractor,
       .default_type = "rodeo"},
      {.path = "readout.checker",
       .help = "What checks the integrity of a chunk. Left out, chunks are not checked.",
       .optional = true,
       .component = ComponentKind::checker},
      {.path = "readout.metrics",
       .help = "Metrics of the readout in Prometheus' text format, over HTTP at /metrics.",
       .keys = {{.name = "listen",
                 .type = KeyType::text,
                 .fallback = "",
                 .help = "ADDRESS:PORT to listen at, for example 127.0.0.1:9464. Empty: no metrics over HTTP."}}},
      {.path = "readout.link_policy",
       .help = "When links leave the build and come back without anybody asking.",
       .keys = {{.name = "remove_after_events",
                 .type = KeyType::integer,
                 .fallback = "0",
                 .help = "Removes a link after so many consecutive events without it, which would each cost their time-out. "
                         "0: never.",
                 .minimum = 0},
                {.name = "restore",
                 .type = KeyType::boolean,
                 .fallback = "true",
                 .help = "Takes a link back when it delivers again, if it was removed by this policy."}}},
      {.path = "readout.rob",
       .help = "One ROB: the links whose chunks become the fragments of one source id.",
       .keys = {{.name = "source_id",
                 .type = KeyType::source_id,
                 .help = "Source id of the ROB; unique in the readout.",
                 .required = true},
                {.name = "links",
                 .type = KeyType::fid_list,
                 .fallback = "[]",
                 .help = "Links of the ROB: FIDs, or ranges FID+N. Left out: every link of the input."},
                {.name = "link_ids",
                 .type = KeyType::text_list,
                 .fallback = "[]",
                 .help = "Detector resource ids for the chunk headers, one per link. Left out: bits 47 to 16 of the FID."},
                {.name = "links_per_group",
                 .type = KeyType::integer,
                 .fallback = "0",
                 .help = "FULL mode: so many neighbours in `links` are one data channel and carry its events in turn. 0: "
                         "all of them are one.",
                 .minimum = 0,
                 .maximum = 65535}},
       .form = Form::array},
      {.path = "readout.consumer",
       .help = "What happens to built fragments. Consumers form a list in the order of the file: each passes fragments on "
               "to the next.",
       .keys = {{.name = "name",
                 .type = KeyType::text,
                 .fallback = "{type}",
                 .help =
                     "Name in reports and messages, each of its own. Left out: the type, from the second on with a number: "
                     "processor_2."}},
       .form = Form::array,
       .component = ComponentKind::consumer,
       .joined = {{"work", ComponentKind::work}}},
  };
  for (TableDeclaration& table : emulator_tables()) tables.push_back(std::move(table));
  auto network = network_tables();
  for (TableDeclaration& table : network) tables.push_back(std::move(table));
  return tables;
}

std::vector<TableDeclaration> tables_for(const std::filesystem::path& file) {
  std::vector<TableDeclaration> tables = system_tables();
  const auto raw = read_toml_file(file);
  if (!raw || raw->find("readout") != nullptr) return tables;
  const bool something_else = std::ranges::any_of(tables, [&](const TableDeclaration& table) {
    return table.optional && table.path.find('.') == std::string::npos && raw->find(table.path) != nullptr;
  });
  if (something_else) std::erase_if(tables, [](const TableDeclaration& table) { return table.path.starts_with("readout"); });
  return tables;
}

}  // namespace rodeo::control
