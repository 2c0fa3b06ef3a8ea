#include "transport/publisher_keys.h"

#include <fmt/format.h>

#include <utility>

#include "transport/bus.h"
#include "transport/provider_choice.h"
#include "transport/secret.h"

namespace rodeo::transport {

Result<PublisherSettings> PublisherKeys::publisher(std::string name) const {
  RODEO_TRY(refuse_unknown_providers(providers));
  const std::string secret = RODEO_TRY(read_secret(secret_file));
  PublisherSettings settings{.name = std::move(name),
                             .bus = bus.empty() ? default_bus() : bus,
                             .address = address,
                             .providers = providers,
                             .secret = secret,
                             .page_bytes = page_bytes,
                             .pages = pages,
                             .flush = flush,
                             .grace = grace};
  RODEO_TRY(refuse_open_address(address, secret));
  return settings;
}

const Settings<PublisherKeys>& publisher_keys() {
  using P = PublisherKeys;
  static const Settings<P> settings{
      setting(&P::bus, "bus",
              "Directory in which publishers say where their links are; on a shared file system if subscribers are on other "
              "hosts. Empty: one of this user on this host."),
      setting(&P::address, "address",
              "Numerical address at which it listens. An address that other hosts can reach needs secret_file."),
      setting(
          &P::providers, "providers",
          "Providers of libfabric that subscribers may choose from: tcp, shm, verbs. Empty: tcp, and verbs where there is "
          "an RDMA device. shm is shared memory within a host: a reader that is killed may stop its publisher with it."),
      setting(
          &P::secret_file, "secret_file",
          "File with the secret that subscribers must know; only its owner may read it. Empty: none, on loopback alone."),
      setting(&P::page_bytes, "page_bytes", "Size of a page, the unit that is sent.",
              {.minimum = 1024, .maximum = 1 << 20, .unit = Unit::bytes}),
      setting(&P::pages, "pages", "Pages that a subscription may have under way; their memory is taken when it begins.",
              {.minimum = 2, .maximum = 65535}),
      setting(&P::flush, "flush", "A page that is not full is sent after this time. 0s: at once, for the lowest latency.",
              {.minimum = 0}),
      setting(&P::grace, "grace",
              "Time for which the data of a subscriber whose connection ended are held until it comes back. A restarted "
              "process "
              "begins with new data, and the held data are `undelivered`. At the end of a run, the publisher waits this "
              "long "
              "for a subscriber that takes nothing.",
              {.minimum = 0}),
  };
  return settings;
}

}  // namespace rodeo::transport
