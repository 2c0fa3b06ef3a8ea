// A Linux host as the switch under test: tc limits and reads the queues of its ports, here or through a command such as ssh.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "network/laboratory/switch_driver.h"

namespace rodeo::network::laboratory {

struct LinuxSwitchSettings {
  std::vector<std::string> command;  ///< command that reaches the switch; empty: the switch is this host
  std::vector<std::string> ports;    ///< links towards the filter nodes
  std::uint64_t port_bps = 0;  ///< rate of the tbf on each port; 0: the link's own rate, with a plain queue of bytes (bfifo)
  std::uint32_t mtu_bytes = 1500;
};

/// Makes a driver for buffers per port only: a shared buffer is refused (network.unsupported), because Linux has none.
std::unique_ptr<SwitchDriver> linux_switch(LinuxSwitchSettings settings);

/// The number in "(dropped N," of the first queue in the output of `tc -s qdisc show`. Error network.driver if it is
/// missing.
Result<std::uint64_t> drops_in(std::string_view tc_output);

}  // namespace rodeo::network::laboratory
