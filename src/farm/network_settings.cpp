#include "farm/network_settings.h"

namespace rodeo::farm {

const Settings<NetworkSettings>& network_settings() {
  using N = NetworkSettings;
  static const Settings<N> settings{
      setting(&N::bus, "bus",
              "Directory in which services publish their addresses; on a shared file system if some run on other hosts. "
              "Empty: a directory of this user on this host."),
      setting(&N::address, "address",
              "Numerical address at which it listens. An address that other hosts can reach needs secret_file."),
      setting(&N::providers, "providers",
              "Providers of libfabric that others may choose from: tcp, shm, verbs. Empty: tcp, and verbs where there is an "
              "RDMA device."),
      setting(&N::secret_file, "secret_file",
              "File with the secret that all processes of the farm must know; only its owner may read it. Empty: no secret, "
              "on loopback only."),
      setting(&N::page_bytes, "page_bytes", "Size of a page, the unit that is sent.",
              {.minimum = 1024, .maximum = 1 << 20, .unit = Unit::bytes}),
      setting(&N::pages, "pages",
              "Pages of each connection and direction; their memory is allocated when the connection is made.",
              {.minimum = 2, .maximum = 65535}),
  };
  return settings;
}

}  // namespace rodeo::farm
