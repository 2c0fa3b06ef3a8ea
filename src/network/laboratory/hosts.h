// The list of hosts of a laboratory of real machines: one line for each readout and filter node.
//
//   # role   data address   command that reaches the host (none: ssh ADDRESS)
//   readout  10.0.0.1       ssh ro1.control
//   node     10.0.1.1       ssh -p 2222 ef1
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace rodeo::network::laboratory {

struct Host {
  bool is_readout = false;
  std::string address;               ///< IPv4 address in the data network
  std::vector<std::string> command;  ///< words before `rodeo net lab-agent`
};

/// `file` is the name of the text in errors. There must be at least one host of each role. Error network.hosts with file and
/// line.
Result<std::vector<Host>> parse_hosts(std::string_view text, const std::string& file);
Result<std::vector<Host>> read_hosts(const std::string& file);

}  // namespace rodeo::network::laboratory
