// The authority's side of the trigger protocol. It serves any number of followers in other processes, and does not rely on
// their answers.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <list>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/wake.h"
#include "formats/provable.h"
#include "trigger/authority.h"
#include "trigger/connection.h"

namespace rodeo::trigger {

struct TriggerServerSettings {
  std::string address;                     ///< in the form of TriggerAddress
  std::string name;                        ///< name of this process
  std::string system = {};                 ///< system that followers must name
  std::uint64_t seed = 1;                  ///< seed of provable payload, from which BCID and trigger type follow
  std::filesystem::path secret_file = {};  ///< required if other hosts reach the address
  std::chrono::milliseconds timeout{60'000};
};

/// Serves from the constructor to the destructor, in its own thread. The authority must outlive it.
class TriggerServer {
 public:
  /// Throws SetupError: trigger.address, trigger.socket, trigger.taken, transport.no_secret, transport.secret_file.
  TriggerServer(TriggerServerSettings settings, TriggerAuthority& authority);
  ~TriggerServer();

  /// The address at which it listens, for people and (TCP) for followers.
  const std::string& where() const { return listener_.where; }
  /// Any thread may call it.
  void report(TriggerReport& report) const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Peer {
    TriggerConnection connection;
    std::string name = {};   // empty before its HELLO was accepted
    std::string where = {};  // address, for messages
    std::optional<protocol::Hello> hello = {};
    TriggerHub::Follower follower = 0;
    Clock::time_point heard = {};
    Clock::time_point told = {};
    std::uint64_t sent = 0;     // triggers sent on this connection
    std::uint64_t granted = 0;  // highest grant of the follower
    std::uint64_t end = 0;      // sequence number behind the last trigger sent
    std::uint32_t hold = 0;     // number of the hold that the follower requested
    std::uint32_t held = 0;     // number of the hold that we answered
    unsigned ready = 0;
    bool begins = false;
    bool gone = false;
  };

  void run();
  void accept_peers();
  void listen_to(Peer& peer);
  bool on_message(Peer& peer, const protocol::Message& message);
  bool on_hello(Peer& peer, const protocol::Hello& hello);
  bool on_greeting(Peer& peer, const protocol::Greeting& greeting);
  void on_state(Peer& peer, const protocol::State& state);
  bool admit(Peer& peer);
  bool refuse(Peer& peer, protocol::Reason reason, std::string why);
  bool send_triggers(Peer& peer);
  bool send(Peer& peer, bool answers_hold);
  void complain(Peer& peer, std::string_view what);
  void drop(Peer& peer, std::string_view why);

  const TriggerServerSettings settings_;
  TriggerAuthority& authority_;
  const formats::Provable provable_;
  const TriggerAddress address_;
  const std::string secret_;
  TriggerAddress::Listener listener_;
  base::Wake wake_;
  std::list<Peer> peers_;
  std::vector<TriggerRange> ranges_;
  protocol::Triggers triggers_;
  Clock::time_point complained_ = {};
  Clock::time_point accept_from_ = {};
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> accepted_{0};
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> bad_messages_{0};
  std::jthread thread_;
};

}  // namespace rodeo::trigger
