// `rodeo net`: how much buffer an event-building network needs.
#include "cli/net.h"

#include "cli/verbs.h"

namespace rodeo::cli {

void add_net(Command& root) {
  Command& net =
      root.verb("net", "How much buffer an event-building network needs: formula, simulation, laboratory, sizing");
  net.example("rodeo net formula --event-size 5MB --rate 12kHz", "the closed forms, in MB and MiB")
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
