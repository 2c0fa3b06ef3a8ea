// The owners of the connections of a thread's ports.
#pragma once

#include <utility>
#include <vector>

#include "transport/fabric_ports.h"

namespace rodeo::transport {

template <typename T>
class ConnectionTable {
 public:
  void put(const FabricPort& port, FabricPort::Connection number, T* owner) {
    std::vector<T*>& of = of_port(port);
    if (of.size() <= number) of.resize(number + 1);
    of[number] = owner;
  }
  void remove(const FabricPort& port, FabricPort::Connection number) { of_port(port)[number] = nullptr; }

  /// Passes each event to the owner of its connection. False: there may be more events.
  template <typename OnEvent>
  bool poll(FabricPorts& ports, OnEvent&& on_event) {
    return ports.poll([&](const FabricPort& port, const FabricPort::Event& event) {
      const std::vector<T*>& of = of_port(port);
      T* const owner = event.connection < of.size() ? of[event.connection] : nullptr;
      if (owner != nullptr) on_event(*owner, event);
    });
  }

 private:
  std::vector<T*>& of_port(const FabricPort& port) {
    for (auto& [known, of] : ports_) {
      if (known == &port) return of;
    }
    return ports_.emplace_back(&port, std::vector<T*>{}).second;
  }

  std::vector<std::pair<const FabricPort*, std::vector<T*>>> ports_;  // a thread has two or three ports
};

}  // namespace rodeo::transport
