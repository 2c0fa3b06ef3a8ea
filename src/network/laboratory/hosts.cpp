#include "network/laboratory/hosts.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

namespace rodeo::network::laboratory {

namespace {

constexpr const char* kExample = "write a line for each host: readout 10.0.0.1 ssh ro1";

std::unexpected<Error> bad(std::string what, std::string where) {
  return std::unexpected(Error{"network.hosts", std::move(what), std::move(where), kExample});
}

}  // namespace

Result<std::vector<Host>> parse_hosts(std::string_view text, const std::string& file) {
  std::vector<Host> hosts;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line.resize(std::min(line.find('#'), line.size()));
    std::istringstream words(line);
    std::string role;
    Host host;
    if (!(words >> role)) continue;
    const std::string where = fmt::format("{}:{}", file, number);
    if (role != "readout" && role != "node") return bad(fmt::format("`{}` is neither readout nor node", role), where);
    host.is_readout = role == "readout";
    in_addr parsed{};
    if (!(words >> host.address) || inet_pton(AF_INET, host.address.c_str(), &parsed) != 1)
      return bad(fmt::format("`{}` is not an IPv4 address", host.address), where);
    for (std::string word; words >> word;) host.command.push_back(word);
    if (host.command.empty()) host.command = {"ssh", host.address};
    hosts.push_back(std::move(host));
  }
  const auto readouts = std::ranges::count(hosts, true, &Host::is_readout);
  if (readouts == 0 || readouts == std::ssize(hosts))
    return bad(
        fmt::format("{} readouts and {} nodes: at least one of each is needed", readouts, std::ssize(hosts) - readouts),
        file);
  return hosts;
}

Result<std::vector<Host>> read_hosts(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) return bad("the list of hosts cannot be read", file);
  return parse_hosts(std::string{std::istreambuf_iterator<char>(stream), {}}, file);
}

}  // namespace rodeo::network::laboratory
