// Requester: sends requests to services on the network. Many may be open; each is answered or ended exactly once.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/error.h"
#include "rodeo/input.h"
#include "transport/received_message.h"

namespace rodeo::transport {

struct RequesterSettings {
  std::string name;                    ///< name that services show
  std::filesystem::path bus = {};      ///< directory of the bus; empty: default_bus()
  std::string provider = "auto";       ///< name of the provider, or "auto" for the best
  std::string secret = {};             ///< empty: services need not prove theirs
  std::uint32_t pages = 64;            ///< pages for replies of each connection; a piece in flight or kept takes one page
  std::uint32_t most_requests = 1024;  ///< limit of open requests to one service; the service may accept fewer
  std::size_t most_reply_bytes = std::size_t{64} << 20;  ///< limit of one reply; a service that sends more is cut off
};

/// The counters that counters() returns.
inline constexpr std::array<base::CounterInfo, 9> kRequesterCounters{{
    {"requests", "requests", "Requests that ask() accepted."},
    {"replies", "requests", "Of these, answered."},
    {"refused", "requests", "Of these, refused by the service."},
    {"timed_out", "requests", "Of these, not answered in time."},
    {"cancelled", "requests", "Of these, cancelled by the caller."},
    {"lost", "requests", "Of these, ended because the connection did."},
    {"late_replies", "requests", "Replies that arrived after the caller had given up."},
    {"connections", "connections", "Connections made, reconnections included."},
    {"reply_bytes", "bytes", "Bytes of the replies that were taken."},
}};

/// One thread calls all functions except counters(). Only a search of the bus blocks. The destructor ends all requests
/// without a reply.
///
///     const auto readout = requester.add("readout1.hlt");
///     requester.ask(readout, kFetch, bytes, 100ms);
///     for (;;) { replies.clear(); requester.poll(base::steady_now_ns(), replies); for (auto& reply : replies) ... }
class Requester {
 public:
  using Service = std::uint32_t;  ///< number that add() returned; the first is 0
  using Request = std::uint64_t;  ///< unique

  explicit Requester(RequesterSettings settings);
  ~Requester();
  Requester(const Requester&) = delete;
  Requester& operator=(const Requester&) = delete;

  /// Adds a service by its name on the bus. poll() searches for it, and again whenever its connection ends.
  Service add(std::string name);
  /// Its requests end as `lost`; it is not called again.
  void remove(Service service);

  bool connected(Service service) const;
  /// The instance number of the service's process; it changes with every restart. 0: never connected.
  std::uint64_t instance(Service service) const;
  /// The number of connections so far.
  std::uint64_t connections(Service service) const;
  /// Why the service is not connected, as text for people; empty while it is.
  const std::string& trouble(Service service) const;
  /// Requests that are neither answered nor ended.
  std::size_t under_way(Service service) const;

  /// Copies the request, which has at most 32 KiB. Nothing: not connected, or `most_requests` are open, or no page is free;
  /// try later. The service defines `kind`. `patience`: from now until the whole reply must have arrived.
  std::optional<Request> ask(Service service, std::uint16_t kind, std::span<const std::byte> request,
                             std::chrono::nanoseconds patience);
  /// For a request of any size, uncopied: the memory of the parts (not the list of them) must not change until poll() has
  /// returned the end of the request.
  std::optional<Request> ask(Service service, std::uint16_t kind, MessageParts parts, std::chrono::nanoseconds patience);

  /// The request ends as `cancelled`, unless it has ended before.
  void cancel(Request request);

  enum class Outcome : std::uint8_t { answered, refused, timed_out, cancelled, lost };
  struct Reply {
    Request request = 0;
    Service service = 0;
    Outcome outcome = Outcome::lost;
    std::uint16_t status = 0;      ///< of `answered` and `refused`: defined by the service
    ReceivedMessage message = {};  ///< of `answered`
  };
  /// Advances transfers and appends the ends of requests: each request once.
  void poll(std::uint64_t now_ns, std::vector<Reply>& ended);

  /// The values of kRequesterCounters, by name. Any thread. requests = replies + refused + timed_out + cancelled + lost +
  /// open ones.
  std::vector<NamedCounter> counters() const;

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace rodeo::transport
