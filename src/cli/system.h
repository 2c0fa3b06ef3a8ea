// What one file may say of a system: the tables that rooms declare, and what each reads out of a configuration.
#pragma once

#include <expected>
#include <filesystem>
#include <memory>
#include <vector>

#include "emulator/emulator.h"
#include "farm/node/plan.h"
#include "farm/recorder/plan.h"
#include "farm/supervisor/plan.h"
#include "readout/plan.h"
#include "router/plan.h"
#include "settings/configuration.h"
#include "settings/json.h"

namespace rodeo::cli {

using settings::ConfigurationErrors;
using settings::ConfigurationSource;
using settings::Json;
using settings::TableDeclaration;

/// Every table there is, parents before children.
std::vector<TableDeclaration> system_tables();

/// Those that a file is checked against: a file that describes something else and has no [readout] needs none. A file that cannot be read
/// gives every table; reading it again says why.
std::vector<TableDeclaration> tables_for(const std::filesystem::path& file);

/// What `rodeo readout` runs. All errors at once.
std::expected<readout::ReadoutPlan, ConfigurationErrors> load_readout(const ConfigurationSource& source);

/// What `rodeo emulate` runs. All errors at once; config.missing_key if there is no [emulator].
std::expected<emulator::EmulatorSettings, ConfigurationErrors> load_emulator(const ConfigurationSource& source);

/// What `rodeo route` runs, with the library that its input comes from.
struct LoadedRouter {
  std::unique_ptr<readout::Library> library;
  router::RouterPlan plan;
};

/// All errors at once; config.missing_key if there is no [router].
std::expected<LoadedRouter, ConfigurationErrors> load_router(const ConfigurationSource& source);

/// What `rodeo farm filter` runs, with the library that its selection comes from.
struct LoadedNode {
  std::unique_ptr<readout::Library> library;
  farm::NodePlan plan;
};

/// All errors at once; config.missing_key if there is no [farm.node].
std::expected<LoadedNode, ConfigurationErrors> load_node(const ConfigurationSource& source);

/// What `rodeo farm supervise`, and `rodeo farm record`, run. All errors at once; config.missing_key if there is no such table of [farm].
std::expected<farm::SupervisorPlan, ConfigurationErrors> load_supervisor(const ConfigurationSource& source);
std::expected<farm::RecorderPlan, ConfigurationErrors> load_recorder(const ConfigurationSource& source);

/// What `rodeo net size` and `rodeo net sweep` work on: network::network_job(). config.missing_key if there is no [network].
std::expected<Json, ConfigurationErrors> load_network(const ConfigurationSource& source);

}  // namespace rodeo::cli
