// Follows a trigger authority in another process, on behalf of all functions of this process: the follower's side of the
// trigger protocol.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/wake.h"
#include "formats/provable.h"
#include "trigger/connection.h"
#include "trigger/source.h"

namespace rodeo::trigger {

struct TriggerFollowerSettings {
  std::string address = {};                ///< in the form of TriggerAddress
  std::string name = {};                   ///< name of this process
  std::string system = {};                 ///< must be equal to the authority's
  std::uint64_t seed = 1;                  ///< seed of provable payload; must be equal to the authority's
  std::filesystem::path secret_file = {};  ///< required if the address is beyond this host
  unsigned functions = 1;
};

/// Connects, and reconnects, in its own thread. Without an authority there are no triggers; everything else works.
class TriggerFollower final : public TriggerHub {
 public:
  /// Does not wait for the authority. Throws SetupError trigger.address, transport.no_secret or transport.secret_file.
  explicit TriggerFollower(TriggerFollowerSettings settings);
  ~TriggerFollower() override;

  void leave(Follower follower) override;
  void set_ready(Follower follower, bool ready, std::uint64_t now_ns) override;
  std::uint64_t take(Follower follower, std::uint64_t most, std::uint64_t now_ns, std::vector<TriggerRange>& out) override;
  void done(Follower follower, std::uint64_t count) override;
  void set_busy(Follower follower, bool busy) override;
  bool hold(std::uint64_t now_ns) override;
  TriggerReport report() const override;

  /// Error trigger.refused if the authority has refused this process and it never followed. The thread still tries again.
  std::optional<Error> refused() const;

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  void follow(TriggerConnection connection);
  bool on_message(TriggerConnection& connection, const protocol::Message& message, std::string& why);
  bool on_greeting(TriggerConnection& connection, const protocol::Greeting& greeting, std::string& why);
  bool on_triggers(const protocol::Triggers& triggers, std::string& why);
  void refused_for(const std::string& why);
  bool send_state(TriggerConnection& connection, bool heartbeat);
  protocol::State state() const;
  void log_loss(const std::string& why);
  void wait(std::chrono::milliseconds time);

  const TriggerFollowerSettings settings_;
  const TriggerAddress address_;
  const std::string secret_;
  const formats::Provable provable_;
  base::Wake wake_;
  std::atomic<bool> stop_{false};

  // mutex_ guards the members below.
  TriggerReport report_;
  TriggerLinkReport link_;
  std::optional<Error> refused_;
  bool welcome_ = false;        // the connection is usable
  std::uint64_t received_ = 0;  // triggers of this connection
  std::uint64_t granted_ = 0;   // room that the authority knows
  std::uint64_t expected_ = 0;  // next sequence number
  std::uint32_t hold_ = 0;      // number of the hold that we requested
  std::uint32_t held_ = 0;      // number of the hold that the authority answered
  std::uint64_t held_at_ns_ = 0;
  std::uint64_t time_ns_ = 0;
  std::uint64_t first_time_ns_ = 0;
  protocol::State told_ = {};
  std::chrono::milliseconds timeout_{5000};
  std::jthread thread_;
};

}  // namespace rodeo::trigger
