#include "transport/fabric_ports.h"

namespace rodeo::transport {

Result<FabricPort*> FabricPorts::port(const std::string& provider) {
  auto port = ports_.find(provider);
  if (port == ports_.end()) port = ports_.emplace(provider, RODEO_TRY(open_fabric(provider, listen_, size_))).first;
  return port->second.get();
}

}  // namespace rodeo::transport
