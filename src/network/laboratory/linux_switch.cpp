#include "network/laboratory/linux_switch.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "base/child_process.h"
#include "base/fd_socket.h"

namespace rodeo::network::laboratory {

namespace {

constexpr std::uint64_t kNoQueueLimit = 2'000'000'000;

std::unexpected<Error> failed(std::string what, std::string next = {}) {
  return std::unexpected(Error{"network.driver", std::move(what), "linux", std::move(next)});
}

/// The stdout of a program; its stderr is the stderr of this process.
Result<std::string> output_of(const std::vector<std::string>& command) {
  auto [from, to] = RODEO_TRY(base::make_pipe());
  const base::UniqueFd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  auto child = base::ChildProcess::start({.command = command, .in = nothing.get(), .out = to.get()});
  to.reset();
  if (!child) return failed(child.error().what);
  std::string text;
  std::array<char, 4096> some{};
  for (ssize_t n = 0; (n = read(from.get(), some.data(), some.size())) > 0 || (n < 0 && errno == EINTR);)
    text.append(some.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  if (const int status = child->wait(); status != 0)
    return failed(fmt::format("`{}` failed with {}", fmt::join(command, " "), status),
                  "its own messages are above; setting queues needs root there");
  return text;
}

class LinuxSwitch final : public SwitchDriver {
 public:
  explicit LinuxSwitch(LinuxSwitchSettings settings) : settings_(std::move(settings)) {}

  Result<std::string> describe() override {
    std::string name = RODEO_TRY(output_of(words({"uname", "-sr"})));
    while (!name.empty() && name.back() == '\n') name.pop_back();
    return fmt::format("{}, {} ports by tc: {}", name, settings_.ports.size(), fmt::join(settings_.ports, " "));
  }

  Result<void> set_buffer(const SwitchBuffer& buffer) override {
    if (buffer.shared_bytes || buffer.cell_bytes != 0)
      return std::unexpected(Error{"network.unsupported", "a Linux host has no buffer that its ports share", "linux",
                                   "use port:SIZE or infinite"});
    const std::uint64_t limit = buffer.port_limit_bytes.value_or(kNoQueueLimit);
    for (const std::string& port : settings_.ports) {
      std::vector<std::string> line{"tc", "qdisc", "replace", "dev", port, "root"};
      const std::uint64_t burst = std::max<std::uint64_t>(2 * (settings_.mtu_bytes + 14), settings_.port_bps / 8 / 10'000);
      const std::vector<std::string> queue =
          settings_.port_bps > 0 ? std::vector<std::string>{"tbf", "rate", fmt::format("{}bit", settings_.port_bps), "burst",
                                                            std::to_string(burst)}
                                 : std::vector<std::string>{"bfifo"};
      line.insert(line.end(), queue.begin(), queue.end());
      line.insert(line.end(), {"limit", std::to_string(limit)});
      RODEO_TRY(output_of(words(line)));
    }
    return {};
  }

  Result<void> start() override { return {}; }

  Result<SwitchCounters> counters() override {
    SwitchCounters sum;
    for (const std::string& port : settings_.ports) {
      const auto text = RODEO_TRY(output_of(words({"tc", "-s", "qdisc", "show", "dev", port, "root"})));
      const auto drops = RODEO_TRY(drops_in(text));
      sum.ports.push_back({port, drops});
      sum.drops += drops;
    }
    return sum;
  }

 private:
  std::vector<std::string> words(const std::vector<std::string>& line) const {
    std::vector<std::string> all = settings_.command;
    all.insert(all.end(), line.begin(), line.end());
    return all;
  }

  LinuxSwitchSettings settings_;
};

}  // namespace

Result<std::uint64_t> drops_in(std::string_view tc_output) {
  constexpr std::string_view kBefore = "(dropped ";
  const std::size_t at = tc_output.find(kBefore);
  if (at == std::string_view::npos) return failed("tc shows no drops", "is there a queue on that link? see `tc -s qdisc`");
  const std::string_view rest = tc_output.substr(at + kBefore.size());
  std::uint64_t drops = 0;
  if (std::from_chars(rest.data(), rest.data() + rest.size(), drops).ec != std::errc{})
    return failed("tc shows no number of drops");
  return drops;
}

std::unique_ptr<SwitchDriver> linux_switch(LinuxSwitchSettings settings) {
  return std::make_unique<LinuxSwitch>(std::move(settings));
}

}  // namespace rodeo::network::laboratory
