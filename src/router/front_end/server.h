// Sends messages of other processes to the front-ends: owners of links, rate limits, and answers.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/counters.h"
#include "base/thread.h"
#include "router/front_end/devices.h"
#include "router/front_end/link_claims.h"
#include "router/front_end/rate_limit.h"
#include "router/router_status.h"
#include "router/settings.h"
#include "transport/listener.h"
#include "transport/publisher.h"

namespace rodeo::router {

/// A thread that listens, announces the links of its devices on the bus, and passes messages from the owners of links to
/// devices. The messages of one owner stay in order.
///
/// A message waits if its card has no room or its link's rate is exceeded. Until it is sent, the thread reads nothing more
/// from its owner. Owners of links of other cards are not affected; owners of links of the same card share its memory. If
/// the card has no room for five seconds, the answer is an error. Slow control waits for the front-end, and delays all
/// owners (devices.h).
class FrontEndServer {
 public:
  /// Throws SetupError if the address is foreign, if a secret is missing, or if the name is taken.
  FrontEndServer(const transport::PublisherSettings& settings, const FrontEndSettings& limits,
                 std::vector<std::unique_ptr<FrontEndDevice>> devices);
  /// Closes all connections. Messages with a positive answer still go to the front-ends.
  ~FrontEndServer();

  void start();
  void stop();

  /// Any thread may call it.
  FrontEndStatus status() const;

 private:
  struct Owner {
    enum class State : std::uint8_t { idle, has_message, waits_for_rate, waits_for_room, gone };

    transport::ControlSocket socket;
    std::string name;
    std::string peer;
    LinkClaims::Owner number = 0;
    std::vector<std::size_t> links;  // indexed by position in the owner's claim
    State state = State::idle;
    formats::ControlSend message = {};  // valid unless idle
    std::uint64_t room_ns = 0;          // the time when the message began to wait for room
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
  };
  struct Link {
    FrontEndDevice* device;
    std::size_t number;
    RateLimit rate;
  };

  void run();
  Result<void> on_claim(transport::ControlSocket& socket, formats::ControlMessage message);
  bool serve(Owner& owner);
  bool read_message(Owner& owner);
  bool send(Owner& owner, std::uint64_t now_ns);
  void send_answer(Owner& owner, formats::ControlAnswer answer);
  void disconnect(Owner& owner, const Error& why);
  void publish_status();

  const FrontEndSettings limits_;
  std::vector<std::unique_ptr<FrontEndDevice>> devices_;
  std::vector<Link> links_;
  std::optional<LinkClaims> claims_;
  transport::Listener listener_;
  std::vector<std::unique_ptr<Owner>> owners_;
  LinkClaims::Owner next_owner_ = 1;
  base::CounterBlock<FrontEndCounter> counters_;
  base::ThreadCpu cpu_;
  std::atomic<bool> stopping_{false};
  mutable std::mutex shown_lock_;
  std::vector<FrontEndStatus::Owner> shown_;
  std::thread thread_;
};

}  // namespace rodeo::router
