// Network namespaces without a name: they live as long as a descriptor of them, so a killed laboratory leaves none.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "base/fd_socket.h"

namespace rodeo::network::laboratory {

class NetworkNamespace {
 public:
  /// A new, empty one. Needs root. Errors: network.needs_root, network.laboratory.
  static Result<NetworkNamespace> make();

  int fd() const { return fd_.get(); }
  /// How `ip link ... netns PATH` reaches it while this process lives.
  std::string path() const;

  /// Calls it on a thread that is in the namespace, and waits.
  Result<void> inside(const std::function<Result<void>()>& work) const;

  /// Runs `ip` or `tc` in it with lines of commands. Error network.laboratory with what the program said.
  Result<void> batch(const std::string& program, const std::string& lines) const;

 private:
  base::UniqueFd fd_;
};

/// Writes a kernel setting of the calling thread's namespace ("ipv4/tcp_no_metrics_save").
Result<void> write_setting(const std::string& name, const std::string& value);

/// Turns off what makes one large packet of many on a link (TSO, GSO, GRO), in the calling thread's namespace.
Result<void> no_large_packets(const std::string& link);

}  // namespace rodeo::network::laboratory
