// Verbs of `rodeo net`, each in its own file; called by net.cpp.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "cli/command.h"
#include "network/scenario_settings.h"

namespace rodeo::cli {

/// Network settings as options of a verb. The settings declare them. Must not move once options refer to it.
class ScenarioOptions {
 public:
  /// The option has the name of the setting, and `old_name` for one minor version. Its help shows the value in `defaults`.
  void add(Command& verb, const network::ScenarioSetting& setting, const network::Scenario& defaults,
           std::string old_name = {});
  /// The settings that the user gave.
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
