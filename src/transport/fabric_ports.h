// The ports of one thread, by provider.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "base/error.h"
#include "transport/fabric.h"

namespace rodeo::transport {

class FabricPorts {
 public:
  explicit FabricPorts(std::string listen = {}, PortSize size = PortSize::few) : listen_(std::move(listen)), size_(size) {}
  /// Opens the port at first use. Errors: those of open_fabric().
  Result<FabricPort*> port(const std::string& provider);

  /// Passes the events of all ports to `take`, which must not poll. False: there may be more events.
  template <typename Take>
  bool poll(Take&& take) {
    bool all = true;
    for (const auto& [name, port] : ports_) {
      const std::size_t count = port->poll(events_);
      for (std::size_t i = 0; i < count; ++i) take(*port, events_[i]);
      all = all && count < events_.size();
    }
    return all;
  }

 private:
  std::string listen_;
  PortSize size_;
  std::map<std::string, std::unique_ptr<FabricPort>> ports_;
  std::array<FabricPort::Event, 128> events_{};
};

}  // namespace rodeo::transport
