// Network namespaces without a name: each lives as long as a descriptor of it is open, so a killed laboratory leaves no
// namespace behind.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "base/fd_socket.h"

namespace rodeo::network::laboratory {

class NetworkNamespace {
 public:
  /// A new, empty namespace. Needs root. Errors: network.needs_root, network.laboratory.
  static Result<NetworkNamespace> make();

  int fd() const { return fd_.get(); }
  /// The PATH for `ip link ... netns PATH` while this process lives.
  std::string path() const;

  /// Calls the function on a thread in the namespace, and waits.
  Result<void> inside(const std::function<Result<void>()>& work) const;

  /// Runs `ip` or `tc` in the namespace with lines of commands. Error network.laboratory with the program's message.
  Result<void> batch(const std::string& program, const std::string& lines) const;

 private:
  base::UniqueFd fd_;
};

/// Writes a kernel setting of the calling thread's namespace ("ipv4/tcp_no_metrics_save").
Result<void> write_setting(const std::string& name, const std::string& value);

/// Turns off offloads that join packets of a link into larger ones (TSO, GSO, GRO), in the calling thread's namespace.
Result<void> no_large_packets(const std::string& link);

}  // namespace rodeo::network::laboratory
