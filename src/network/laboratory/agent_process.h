// The laboratory's side of an agent: lines of agent.h, sent and answered.
#pragma once

#include <string>
#include <vector>

#include "network/laboratory/line_process.h"
#include "network/laboratory/message.h"

namespace rodeo::network::laboratory {

class AgentProcess {
 public:
  /// As LineProcess::start. Error network.agent.
  static Result<AgentProcess> start(std::string name, const std::vector<std::string>& command, int network_namespace);

  const std::string& name() const { return process_.name(); }

  Result<void> send(const Line& line) { return process_.send(line.str()); }
  /// The next line, whatever it is. Errors: network.agent (it ended), network.agent_silent, network.interrupted, and what it says is wrong.
  Result<Line> receive(std::chrono::milliseconds patience, const Stop& stop);
  /// send() and receive() of an `ok`.
  Result<Line> ask(const Line& line, const Stop& stop, std::chrono::milliseconds patience = std::chrono::seconds(20));

 private:
  explicit AgentProcess(LineProcess process) : process_(std::move(process)) {}
  LineProcess process_;
};

}  // namespace rodeo::network::laboratory
