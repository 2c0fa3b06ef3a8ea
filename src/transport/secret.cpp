#include "transport/secret.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>

#include "transport/control_socket.h"

namespace rodeo::transport {

Result<std::string> read_secret(const std::filesystem::path& file) {
  if (file.empty()) return std::string();
  constexpr std::size_t kMost = 4096;
  const auto refused = [&](std::string why) {
    return std::unexpected(Error{"transport.secret_file",
                                 fmt::format("the secret in {} {}", file.string(), why),
                                 {},
                                 "`head -c 32 /dev/urandom | base64 > FILE; chmod 600 FILE` makes one"});
  };
  struct stat status{};
  // This check is the first, because opening a pipe may block for ever.
  if (::stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return refused("cannot be read");
  std::ifstream in(file, std::ios::binary);
  if (!in) return refused("cannot be read");
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) return refused("can be read by others than its owner");
  std::string secret(kMost + 1, '\0');
  in.read(secret.data(), static_cast<std::streamsize>(secret.size()));
  secret.resize(static_cast<std::size_t>(in.gcount()));
  if (secret.size() > kMost) return refused(fmt::format("is longer than {} bytes", kMost));
  while (secret.ends_with('\n') || secret.ends_with('\r')) secret.pop_back();
  if (secret.empty()) return refused("is empty");
  return secret;
}

Result<void> refuse_open_address(const std::string& address, const std::string& secret) {
  if (is_loopback(address)) return {};
  if (secret.empty())
    return std::unexpected(Error{"transport.no_secret",
                                 fmt::format("{} is reached from other hosts, and there is no secret", address),
                                 {},
                                 "set secret_file, for both sides, or listen at 127.0.0.1"});
  if (is_wildcard(address))
    return std::unexpected(Error{"transport.address",
                                 fmt::format("{} means all addresses of this host, and peers need one address", address),
                                 {},
                                 "name the address by which other hosts reach this one; `ip address` shows them"});
  return {};
}

}  // namespace rodeo::transport
