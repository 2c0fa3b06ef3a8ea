// What every process of the house can be told, and what is wrong with it.
#pragma once

#include <vector>

#include "rodeo/parameters.h"
#include "settings/configuration.h"

namespace rodeo::process {

/// The keys of a table [NAME.metrics].
std::vector<Key> metrics_keys();

/// Refuses a value that cannot stand in the names of files and sockets, in stream tags and shell commands.
void refuse_other_than_plain_name(const settings::Table& table, const char* key, settings::ConfigurationErrors& errors);

/// Refuses an address of [NAME.metrics] at which nobody could listen.
void refuse_bad_listen(const settings::Table& metrics, settings::ConfigurationErrors& errors);

}  // namespace rodeo::process
