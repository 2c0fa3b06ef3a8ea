#include "transport/provider_choice.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <filesystem>
#include <string_view>

namespace rodeo::transport {

Here Here::detect() {
  Here here{.host = {}, .pid = ::getpid(), .rdma = false};
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (::gethostname(name.data(), name.size() - 1) == 0) here.host = name.data();
  std::error_code none;
  here.rdma = std::filesystem::directory_iterator("/sys/class/infiniband", none) != std::filesystem::directory_iterator();
  return here;
}

std::vector<std::string> offered_providers(const Here& here) {
  return here.rdma ? std::vector<std::string>{"verbs", "tcp"} : std::vector<std::string>{"tcp"};
}

std::vector<std::string> provider_choice(const std::string& wanted, const BusEntry& publisher, const Here& here) {
  const auto offered = [&](const std::string& provider) {
    return std::ranges::find(publisher.providers, provider) != publisher.providers.end();
  };
  if (wanted != "auto") return {wanted};
  std::vector<std::string> choice;
  if (offered("verbs") && here.rdma) choice.emplace_back("verbs");
  if (offered("tcp")) choice.emplace_back("tcp");
  return choice;
}

Result<void> refuse_unknown_providers(const std::vector<std::string>& providers) {
  constexpr std::array<std::string_view, 3> kKnown{"tcp", "shm", "verbs"};
  for (std::size_t i = 0; i < providers.size(); ++i) {
    const bool known = std::ranges::find(kKnown, providers[i]) != kKnown.end();
    const bool again = std::ranges::find(providers, providers[i]) != providers.begin() + static_cast<std::ptrdiff_t>(i);
    if (!known || again)
      return std::unexpected(
          Error{"transport.provider",
                fmt::format("the network provider `{}` is {}", providers[i], known ? "named twice" : "unknown"),
                {},
                "providers = [] offers all there are; otherwise name any of tcp, shm, verbs"});
  }
  return {};
}

}  // namespace rodeo::transport
