// Verbs of `rodeo net`, each in a file of its own; called by net.cpp.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "cli/command.h"
#include "network/scenario_settings.h"

namespace rodeo::cli {

/// Settings of a network as options of a verb, declared where the settings are. Must not move once options refer to it.
class ScenarioOptions {
 public:
  /// The option is called as the setting unless `flag` says otherwise; `defaults` is what its help shows.
  void add(Command& verb, const network::ScenarioSetting& setting, const network::Scenario& defaults, std::string flag = {});
  /// Those that were given.
  network::NamedTexts given() const;

 private:
  std::map<std::string, std::optional<std::string>> texts_;
};

void add_net_figures(Command& net);
void add_net_formula(Command& net);
void add_net_lab(Command& net);
void add_net_plot(Command& net);
void add_net_simulate(Command& net);
void add_net_size(Command& net);
void add_net_sweep(Command& net);

}  // namespace rodeo::cli
