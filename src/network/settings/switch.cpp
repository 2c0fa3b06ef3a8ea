// Settings of the switches' buffers.
#include <fmt/core.h>

#include "network/settings/tables.h"
#include "network/settings/values.h"

namespace rodeo::network::settings {

using Kind = ScenarioSetting::Kind;

std::vector<ScenarioSetting> switch_table() {
  return {
      {"switch",
       "switch",
       Kind::choice,
       "Switch that the other keys change. plain has an infinite buffer that counts bytes.",
       {"plain", "qfx5120", "acx7100"},
       [](Scenario& s, std::string_view t) -> Result<void> {
         if (t == "plain") {
           s.buffer = SwitchBuffer{};
           return {};
         }
         auto preset = switch_preset(t);
         if (!preset) return std::unexpected(preset.error());
         s.buffer = *preset;
         return {};
       },
       WRITES(s.buffer.virtual_output_queues ? "acx7100"
              : s.buffer.cell_bytes != 0     ? "qfx5120"
                                             : "plain")},
      {"buffer",
       "switch",
       Kind::size,
       "Memory shared by all ports, or infinite.",
       {},
       READS(read_size_or(s.buffer.shared_bytes, t, "infinite")),
       WRITES(bytes_or(s.buffer.shared_bytes, "infinite"))},
      {"dedicated",
       "switch",
       Kind::size,
       "Memory of each port alone, beside the shared.",
       {},
       READS(read_size(s.buffer.dedicated_bytes_per_port, t)),
       WRITES(std::to_string(s.buffer.dedicated_bytes_per_port))},
      {"dynamic_threshold",
       "switch",
       Kind::number,
       "A port may hold this many times what is free of the shared memory; 0: no threshold.",
       {},
       READS(read_number(s.buffer.dynamic_threshold, t)),
       WRITES(fmt::format("{}", s.buffer.dynamic_threshold))},
      {"port_limit",
       "switch",
       Kind::size,
       "What one port may hold at most, or none.",
       {},
       READS(read_size_or(s.buffer.port_limit_bytes, t, "none")),
       WRITES(bytes_or(s.buffer.port_limit_bytes, "none"))},
      {"cell",
       "switch",
       Kind::size,
       "Memory is given out in cells of this size; 0: by the byte.",
       {},
       READS(read_size(s.buffer.cell_bytes, t)),
       WRITES(std::to_string(s.buffer.cell_bytes))},
      {"cell_metadata",
       "switch",
       Kind::size,
       "What the switch itself keeps in the first cell of a packet.",
       {},
       READS(read_size(s.buffer.first_cell_metadata_bytes, t)),
       WRITES(std::to_string(s.buffer.first_cell_metadata_bytes))},
      {"virtual_output_queues",
       "switch",
       Kind::boolean,
       "A deep buffer with a queue for each input and output.",
       {},
       READS(read_boolean(s.buffer.virtual_output_queues, t)),
       WRITES(s.buffer.virtual_output_queues ? "true" : "false")},
  };
}

}  // namespace rodeo::network::settings
