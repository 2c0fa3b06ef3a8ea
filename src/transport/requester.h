// Requester: asks services on the network, with many requests under way, and has each answered or ended, once.
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

/// A message as it lies in memory: its bytes are those of the parts, one behind the other.
using MessageParts = std::span<const std::span<const std::byte>>;

struct RequesterSettings {
  std::string name;                    ///< as services show it
  std::filesystem::path bus = {};      ///< where services are found; empty: default_bus()
  std::string provider = "auto";       ///< or one by name
  std::string secret = {};             ///< empty: services are believed
  std::uint32_t pages = 64;            ///< of each connection, for replies: what is under way or kept takes one a piece
  std::uint32_t most_requests = 1024;  ///< under way with one service, or as many as it takes
  std::size_t most_reply_bytes = std::size_t{64} << 20;  ///< of one reply; a service that sends more is cut off
};

/// What counters() has.
inline constexpr std::array<base::CounterInfo, 9> kRequesterCounters{{
    {"requests", "requests", "Requests that were taken by ask()."},
    {"replies", "requests", "Of these, answered."},
    {"refused", "requests", "Of these, refused by the service."},
    {"timed_out", "requests", "Of these, not answered in time."},
    {"cancelled", "requests", "Of these, cancelled by who asked."},
    {"lost", "requests", "Of these, ended because the connection did."},
    {"late_replies", "requests", "Replies that came when nobody waited for them any more."},
    {"connections", "connections", "Connections made, those made anew included."},
    {"reply_bytes", "bytes", "Bytes of the replies that were taken."},
}};

/// All functions by one thread, but for counters(). Nothing blocks, but a look at the bus. Where it ends, all requests do, untold.
///
///     const auto readout = requester.add("readout1.hlt");
///     requester.ask(readout, kFetch, bytes, 100ms);
///     for (;;) { replies.clear(); requester.poll(base::steady_now_ns(), replies); for (auto& reply : replies) ... }
class Requester {
 public:
  using Service = std::uint32_t;  ///< from 0, as add() gave it
  using Request = std::uint64_t;  ///< never the same twice

  explicit Requester(RequesterSettings settings);
  ~Requester();
  Requester(const Requester&) = delete;
  Requester& operator=(const Requester&) = delete;

  /// A service by its name on the bus. It is looked for by poll(), and again whenever its connection ends.
  Service add(std::string name);
  /// Its requests end as `lost`; it is called no more.
  void remove(Service service);

  bool connected(Service service) const;
  /// Of the process that has the service: another number after it was started anew. 0: never connected.
  std::uint64_t instance(Service service) const;
  /// How often it has been connected.
  std::uint64_t connections(Service service) const;
  /// Why it is not connected, for people; empty while it is.
  const std::string& trouble(Service service) const;
  /// Requests that are neither answered nor ended.
  std::size_t under_way(Service service) const;

  /// Copies the request, which has at most 32 KiB. Nothing: not connected, or `most_requests` are under way, or there is no page to put it into; later
  /// then. `kind` is the service's business. `patience`: from now until the reply must have come whole.
  std::optional<Request> ask(Service service, std::uint16_t kind, std::span<const std::byte> request,
                             std::chrono::nanoseconds patience);
  /// The same of any size, uncopied: the memory of the parts (not the list of them) must stay as it is until poll() has returned the end of the request.
  std::optional<Request> ask(Service service, std::uint16_t kind, MessageParts parts, std::chrono::nanoseconds patience);

  /// It ends as `cancelled`, unless it has ended before.
  void cancel(Request request);

  enum class Outcome : std::uint8_t { answered, refused, timed_out, cancelled, lost };
  struct Reply {
    Request request = 0;
    Service service = 0;
    Outcome outcome = Outcome::lost;
    std::uint16_t status = 0;      ///< of `answered` and `refused`: the service's business
    ReceivedMessage message = {};  ///< of `answered`
  };
  /// Moves the network on and appends what has ended: each request once.
  void poll(std::uint64_t now_ns, std::vector<Reply>& ended);

  /// kRequesterCounters, by name. Any thread. requests = replies + refused + timed_out + cancelled + lost + those under way.
  std::vector<NamedCounter> counters() const;

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

}  // namespace rodeo::transport
