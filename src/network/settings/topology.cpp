// Settings of the network's topology: how many there are of what, and the links between them.
#include "network/settings/tables.h"
#include "network/settings/values.h"

namespace rodeo::network::settings {

namespace {

using Kind = ScenarioSetting::Kind;

constexpr Names<UplinkSharing, 2> kSharing{{{{"ideal", UplinkSharing::ideal}, {"flow-hash", UplinkSharing::flow_hash}}}};

}  // namespace

std::vector<ScenarioSetting> topology_table() {
  return {
      {"preset",
       "topology",
       Kind::choice,
       "Topology that the other keys change: lab-2023 is the paper's laboratory with 48 readouts, hl-lhc has 600.",
       {"lab-2023", "hl-lhc"},
       [](Scenario& s, std::string_view t) -> Result<void> {
         auto preset = topology_preset(t);
         if (!preset) return std::unexpected(preset.error());
         s.topology = *preset;
         return {};
       },
       WRITES(s.topology.readouts == 600 ? "hl-lhc" : "lab-2023")},
      {"readouts",
       "topology",
       Kind::count,
       "Readout nodes, each with a fragment of every event.",
       {},
       READS(read_count(s.topology.readouts, t)),
       WRITES(std::to_string(s.topology.readouts))},
      {"nodes",
       "topology",
       Kind::count,
       "Filter nodes, all racks together.",
       {},
       READS(read_count(s.topology.nodes, t)),
       WRITES(std::to_string(s.topology.nodes))},
      {"racks",
       "topology",
       Kind::count,
       "Racks, each with a switch of its own.",
       {},
       READS(read_count(s.topology.racks, t)),
       WRITES(std::to_string(s.topology.racks))},
      {"readout_link",
       "topology",
       Kind::bit_rate,
       "Link of a readout.",
       {},
       READS(read_bit_rate(s.topology.readout_link_bps, t)),
       WRITES(std::to_string(s.topology.readout_link_bps))},
      {"uplink",
       "topology",
       Kind::bit_rate,
       "All links together from the core to the switch of one rack.",
       {},
       READS(read_bit_rate(s.topology.uplink_bps, t)),
       WRITES(std::to_string(s.topology.uplink_bps))},
      {"uplinks",
       "topology",
       Kind::count,
       "Physical links that make up `uplink`.",
       {},
       READS(read_count(s.topology.uplinks, t)),
       WRITES(std::to_string(s.topology.uplinks))},
      {"uplink_sharing",
       "topology",
       Kind::choice,
       "How packets are spread over them: as if they were one link, or by a hash of the flow.",
       {"ideal", "flow-hash"},
       READS(kSharing.read(s.topology.uplink_sharing, t)),
       WRITES(kSharing.text(s.topology.uplink_sharing))},
      {"node_link",
       "topology",
       Kind::bit_rate,
       "Link from the switch to one node.",
       {},
       READS(read_bit_rate(s.topology.node_link_bps, t)),
       WRITES(std::to_string(s.topology.node_link_bps))},
      {"propagation",
       "topology",
       Kind::duration,
       "Delay from readout to node, one way.",
       {},
       READS(read_duration(s.topology.propagation_ns, t)),
       WRITES(seconds(s.topology.propagation_ns))},
  };
}

}  // namespace rodeo::network::settings
