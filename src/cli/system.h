// The tables of a configuration that the rooms declare, and the functions that read each part.
#pragma once

#include <expected>
#include <filesystem>
#include <memory>
#include <vector>

#include "emulator/emulator.h"
#include "farm/node/configuration.h"
#include "farm/recorder/configuration.h"
#include "farm/supervisor/configuration.h"
#include "readout/configuration.h"
#include "router/configuration.h"
#include "settings/configuration.h"
#include "settings/json.h"

namespace rodeo::cli {

using settings::ConfigurationErrors;
using settings::ConfigurationSource;
using settings::Json;
using settings::TableDeclaration;

/// All tables, parents before children.
std::vector<TableDeclaration> system_tables();

/// The tables for checking a file. If the file has no [readout] but another main table, the [readout...] tables are left
/// out. For an unreadable file: all tables; reading it again gives the reason.
std::vector<TableDeclaration> tables_for(const std::filesystem::path& file);

/// The configuration for `rodeo readout`. Returns all errors at once.
std::expected<readout::ReadoutConfiguration, ConfigurationErrors> load_readout(const ConfigurationSource& source);

/// The settings for `rodeo emulate`. Returns all errors at once; config.missing_key without [emulator].
std::expected<emulator::EmulatorSettings, ConfigurationErrors> load_emulator(const ConfigurationSource& source);

/// The configuration for `rodeo route`, with the library of its input.
struct LoadedRouter {
  std::unique_ptr<readout::Library> library;
  router::RouterConfiguration configuration;
};

/// Returns all errors at once; config.missing_key without [router].
std::expected<LoadedRouter, ConfigurationErrors> load_router(const ConfigurationSource& source);

/// The configuration for `rodeo farm filter`, with the library of its selection.
struct LoadedNode {
  std::unique_ptr<readout::Library> library;
  farm::NodeConfiguration configuration;
};

/// Returns all errors at once; config.missing_key without [farm.node].
std::expected<LoadedNode, ConfigurationErrors> load_node(const ConfigurationSource& source);

/// The configurations for `rodeo farm supervise` and `rodeo farm record`. Return all errors at once; config.missing_key
/// without their table of [farm].
std::expected<farm::SupervisorConfiguration, ConfigurationErrors> load_supervisor(const ConfigurationSource& source);
std::expected<farm::RecorderConfiguration, ConfigurationErrors> load_recorder(const ConfigurationSource& source);

/// The job for `rodeo net size` and `rodeo net sweep`: network::network_job(). config.missing_key without [network].
std::expected<Json, ConfigurationErrors> load_network(const ConfigurationSource& source);

}  // namespace rodeo::cli
