// Replier: a service on the network for any client; replies are sent from where they lie.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/counters.h"
#include "base/error.h"
#include "rodeo/input.h"
#include "transport/received_message.h"
#include "transport/requester.h"

namespace rodeo::transport {

struct ReplierSettings {
  std::string name;                         ///< unique on the bus among living services: "readout1.hlt"
  std::string service;                      ///< the kind of service, for readers of the bus: "fragments"
  std::filesystem::path bus;                ///< directory of the bus
  std::string address = "127.0.0.1";        ///< numerical address at which it listens
  std::vector<std::string> providers = {};  ///< offered providers; empty: offered_providers()
  std::string secret = {};                  ///< required if `address` is not a loopback address
  std::uint32_t page_bytes = 64U << 10;     ///< size of a page, for both directions
  std::uint32_t pages = 64;                 ///< pages of each connection and direction
  std::size_t most_clients = 1024;          ///< limit of clients at a time
  std::uint32_t most_requests = 1024;       ///< limit of unanswered requests of one client; the client gets this limit
  std::size_t most_request_bytes = std::size_t{64} << 20;
};

/// The counters that counters() returns.
inline constexpr std::array<base::CounterInfo, 10> kReplierCounters{{
    {"requests", "requests", "Requests received completely."},
    {"replies", "requests", "Of these, answered or refused, and completely sent."},
    {"unwanted_replies", "requests", "Of these, requests whose client left or cancelled before the whole reply was sent."},
    {"clients", "clients", "Clients that connected, those that came again included."},
    {"refused_peers", "peers",
     "Peers that were turned away or cut off: no secret, another version, too many clients or requests, unknown "
     "networks, replies not taken, unreadable messages."},
    {"refused_version", "peers", "Of these, peers that speak another version."},
    {"refused_secret", "peers", "Of these, peers without the secret."},
    {"refused_unreadable", "peers", "Of these, peers that sent an unreadable or unexpected message, or none."},
    {"reply_bytes", "bytes", "Bytes of replies sent."},
    {"copied_bytes", "bytes",
     "Of these, copied before sending: small parts, or all if the network needs registered memory."},
}};

/// Learns when the memory of a reply is free again. The thread of the Replier calls sent() in poll(), reply() or the
/// destructor; sent() must not call the Replier.
class ReplyOwner {
 public:
  virtual void sent(std::uint64_t tag) noexcept = 0;

 protected:
  ~ReplyOwner() = default;
};

/// One thread calls all functions except counters(). Nothing blocks.
class Replier {
 public:
  /// Listens, and enters itself on the bus. Throws SetupError if the address is foreign, if a secret is missing, or if the
  /// name is taken.
  explicit Replier(ReplierSettings settings);
  ~Replier();
  Replier(const Replier&) = delete;
  Replier& operator=(const Replier&) = delete;

  /// One connection of a client. A number is never used again.
  using Client = std::uint64_t;

  struct Request {
    Client client = 0;
    std::uint64_t number = 0;  ///< unique only within its client; reply() needs client and number
    std::uint16_t kind = 0;
    ReceivedMessage message = {};
  };

  /// Advances transfers. Appends new requests to `requests`, and to `dropped` those that need no reply any more, because the
  /// client has cancelled or left. Each request MUST be answered once unless it is in `dropped`; a reply to a dropped
  /// request is discarded.
  struct Dropped {
    Client client = 0;
    std::uint64_t number = 0;
  };
  void poll(std::uint64_t now_ns, std::vector<Request>& requests, std::vector<Dropped>& dropped);
  /// True for a request that arrived and was dropped in one poll().
  static bool was_dropped(const Request& request, const std::vector<Dropped>& dropped);

  /// True if the last poll() returned everything that had arrived: a client without a request is then silent. False: more
  /// may have arrived.
  bool heard_all() const;

  /// Answers from the memory of the parts (not the list of them), which must stay until owner->sent(tag). A null `owner`
  /// means: the parts have at most 32 KiB, and are copied.
  void reply(Client client, std::uint64_t number, std::uint16_t status, MessageParts parts, ReplyOwner* owner = nullptr,
             std::uint64_t tag = 0);
  /// Sends a status only; the requester sees `refused`.
  void refuse(Client client, std::uint64_t number, std::uint16_t status);

  /// Ends the connection of a client, for example one that takes no replies; its open requests become `dropped`. It may
  /// connect again.
  void cut_off(Client client, const std::string& why);

  /// The name that the client gave itself. Empty: the client is gone.
  std::string_view client_name(Client client) const;
  std::vector<Client> clients() const;
  /// Bytes of replies that the client has accepted so far. 0: the client is gone.
  std::uint64_t sent_bytes(Client client) const;

  /// The values of kReplierCounters, by name. Any thread may call it.
  std::vector<NamedCounter> counters() const;

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace rodeo::transport
