#include "transport/replier_keys.h"

#include <utility>

#include "transport/bus.h"
#include "transport/provider_choice.h"
#include "transport/secret.h"

namespace rodeo::transport {

Result<ReplierSettings> ReplierKeys::replier(std::string name, std::string service) const {
  RODEO_TRY(refuse_unknown_providers(providers));
  const std::string secret = RODEO_TRY(read_secret(secret_file));
  RODEO_TRY(refuse_open_address(address, secret));
  return ReplierSettings{.name = std::move(name),
                         .service = std::move(service),
                         .bus = bus.empty() ? default_bus() : bus,
                         .address = address,
                         .providers = providers,
                         .secret = secret,
                         .page_bytes = page_bytes,
                         .pages = pages,
                         .most_clients = most_clients};
}

const Settings<ReplierKeys>& replier_keys() {
  using R = ReplierKeys;
  static const Settings<R> settings{
      setting(
          &R::bus, "bus",
          "Directory in which services say where they are; on a shared file system if clients are on other hosts. Empty: "
          "one of this user on this host."),
      setting(&R::address, "address",
              "Numerical address at which it listens. An address that other hosts can reach needs secret_file."),
      setting(&R::providers, "providers",
              "Providers of libfabric that clients may choose from: tcp, shm, verbs. Empty: tcp, and verbs where there is "
              "an RDMA "
              "device. shm is shared memory within a host: a client that is killed may stop the service with it."),
      setting(&R::secret_file, "secret_file",
              "File with the secret that clients must know; only its owner may read it. Empty: none, on loopback alone."),
      setting(&R::page_bytes, "page_bytes", "Size of a page, the unit that is sent.",
              {.minimum = 4096, .maximum = 1 << 20, .unit = Unit::bytes}),
      setting(&R::pages, "pages",
              "Pages that a connection may have under way, of each direction; their memory is taken when it begins.",
              {.minimum = 2, .maximum = 65535}),
      setting(&R::most_clients, "most_clients",
              "Clients that may be connected at a time: each filter node of a farm is one, and its supervisor.",
              {.minimum = 1, .maximum = 65535}),
  };
  return settings;
}

}  // namespace rodeo::transport
