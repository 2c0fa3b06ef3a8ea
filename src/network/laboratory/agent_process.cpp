#include "network/laboratory/agent_process.h"

#include <algorithm>

namespace rodeo::network::laboratory {

Result<AgentProcess> AgentProcess::start(std::string name, const std::vector<std::string>& command, int network_namespace) {
  return AgentProcess(RODEO_TRY(LineProcess::start(std::move(name), "network.agent", command, network_namespace)));
}

Result<Line> AgentProcess::receive(std::chrono::milliseconds patience, const Stop& stop) {
  const auto text = RODEO_TRY(process_.receive(patience, stop));
  Line line = Line::parse(text);
  if (line.verb() != "error") return line;
  const std::string& said = line.rest();  // "network.unsupported no congestion control ..."
  const std::size_t space = std::min(said.find(' '), said.size());
  if (!said.starts_with("network.")) return std::unexpected(Error{"network.agent", said, name()});
  return std::unexpected(Error{said.substr(0, space), said.substr(std::min(space + 1, said.size())), name()});
}

Result<Line> AgentProcess::ask(const Line& line, const Stop& stop, std::chrono::milliseconds patience) {
  RODEO_TRY(send(line));
  auto answer = receive(patience, stop);
  if (answer && answer->verb() != "ok")
    return std::unexpected(Error{"network.agent", "unexpected answer `" + answer->verb() + "`", name()});
  return answer;
}

}  // namespace rodeo::network::laboratory
