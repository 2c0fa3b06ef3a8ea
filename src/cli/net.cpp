// `rodeo net`: the buffer that an event-building network needs.
#include "cli/net.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/verbs.h"

namespace rodeo::cli {

void ScenarioOptions::add(Command& verb, const network::ScenarioSetting& setting, const network::Scenario& defaults,
                          std::string old_name) {
  const Key& key = setting.key;
  std::string flag = "--" + key.name;
  std::ranges::replace(flag, '_', '-');
  std::string values;
  for (const std::string& choice : key.choices) values += (values.empty() ? "" : "|") + choice;
  if (values.empty()) values = setting.value_name();
  verb.option(flag, texts_[key.name], fmt::format("{} (default {})", key.help, setting.readable(defaults)))
      .value_name(values)
      .renamed_from(std::move(old_name));
}

network::NamedTexts ScenarioOptions::given() const {
  network::NamedTexts given;
  for (const auto& [name, text] : texts_) {
    if (text) given.emplace_back(name, *text);
  }
  return given;
}

void add_net(Command& root) {
  Command& net =
      root.verb("net", "Computes the buffer that an event-building network needs: formula, simulation, laboratory, sizing");
  net.example("rodeo net formula --event-size 5MB --rate 12kHz", "closed forms, in MB and MiB")
      .example("rodeo net size network.toml", "the buffer to buy for your network, proved, with a report");
  add_net_formula(net);
  add_net_simulate(net);
  add_net_size(net);
  add_net_sweep(net);
  add_net_plot(net);
  add_net_figures(net);
  add_net_lab(net);
}

}  // namespace rodeo::cli
