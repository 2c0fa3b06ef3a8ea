// Finds the owner of a connection of a port.
#pragma once

#include <utility>
#include <vector>

#include "transport/fabric.h"

namespace rodeo::transport {

template <typename T>
class ConnectionTable {
 public:
  void put(const FabricPort& port, FabricPort::Connection number, T* whose) {
    std::vector<T*>& of = of_port(port);
    if (of.size() <= number) of.resize(number + 1);
    of[number] = whose;
  }
  void remove(const FabricPort& port, FabricPort::Connection number) { of_port(port)[number] = nullptr; }

  /// nullptr: the connection has no owner.
  T* find(const FabricPort& port, FabricPort::Connection number) {
    const std::vector<T*>& of = of_port(port);
    return number < of.size() ? of[number] : nullptr;
  }

 private:
  std::vector<T*>& of_port(const FabricPort& port) {
    for (auto& [known, of] : ports_) {
      if (known == &port) return of;
    }
    return ports_.emplace_back(&port, std::vector<T*>{}).second;
  }

  std::vector<std::pair<const FabricPort*, std::vector<T*>>> ports_;  // two or three
};

}  // namespace rodeo::transport
