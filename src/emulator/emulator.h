// An emulator process: cards from plain settings, their trigger authority, the schedule of faults, the report.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "emulator/card_settings.h"
#include "emulator/pci_function.h"
#include "trigger/authority.h"
#include "trigger/follower.h"
#include "trigger/server.h"

namespace rodeo::emulator {

struct EmulatorSettings {
  std::string name = "emulator";
  std::filesystem::path directory;  ///< directory of sockets and locks; empty: <runtime directory>/cards
  base::IdlePolicy idle = base::IdlePolicy::sleep;
  std::vector<EmulatedCardSettings> cards;
  trigger::TriggerSettings trigger;  ///< wait_for 0: all functions of this process
  std::string serve;                 ///< address at which others follow this process's triggers; empty: none
  /// Address of the authority to follow (then there is no `trigger`); empty: this process assigns triggers.
  std::string follow;
  std::string system;                 ///< name that must be equal in authority and followers
  std::filesystem::path secret_file;  ///< of `serve` or `follow`; required if the address is beyond this host
  std::string configuration_sha256;   ///< the checksum of settings::configuration_sha256(), for the status
  std::chrono::milliseconds follower_timeout{60'000};  ///< a follower is dropped after this time without a message
  std::vector<ScheduledFault> faults;
  std::chrono::nanoseconds stop_limit = std::chrono::seconds{30};  ///< longest time from the order to stop to the end
};

struct EmulatorReport {
  double seconds = 0;
  double cpu_seconds = 0;
  trigger::TriggerReport trigger = {};
  std::vector<FunctionReport> functions = {};
  std::uint64_t faults = 0;
};

/// Runs from the constructor (throws SetupError) to the destructor. For one thread; inject() and report() for any thread.
class Emulator {
 public:
  explicit Emulator(EmulatorSettings settings);
  ~Emulator();

  /// Applies due faults. Call again before next_poll() has passed.
  void poll();
  /// The longest time until the next poll(): 5 ms while data are taken here or followers are served, else up to 50 ms.
  std::chrono::milliseconds next_poll() const;

  /// `id`: address of a function ("3b:00.0"), name of a card (endpoint 0), or name:endpoint. Errors: emulator.no_such_card,
  /// emulator.no_such_fault (the card has no such fault, link, temperature or duration; or it is removed, or not removed).
  /// A fault with a duration ends by itself, at a poll().
  Result<void> inject(const std::string& id, const Fault& fault);

  /// See TriggerAuthority::hold_run() and release(). Returns the number of triggers accepted up to now. Error
  /// emulator.follows if this process follows an authority.
  Result<std::uint64_t> hold_triggers();
  Result<void> release_triggers(std::optional<unsigned> wait_for);
  /// See TriggerAuthority::advance_marks(). Error emulator.follows if this process follows an authority.
  Result<trigger::TriggerAuthority::Next> advance_marks(const trigger::TriggerAuthority::Advance& advance);

  /// Ends the DMA of all functions for good; then a report is final. Data in progress are lost and counted; registers still
  /// answer.
  void finish();

  /// The values of different functions are not of the same moment while DMA is running.
  EmulatorReport report() const;
  /// Time since the start.
  double seconds() const;
  /// True if the trigger limit is reached and all functions have all triggers.
  bool ended() const { return authority_ && authority_->ended(); }
  /// A reason to end: the authority that this process follows refuses it.
  std::optional<Error> failure() const { return link_ ? link_->refused() : std::nullopt; }
  /// The address for followers; empty if this process serves none.
  std::string serves_at() const { return server_ ? server_->where() : std::string(); }
  const EmulatorSettings& settings() const { return settings_; }

 private:
  struct Due {
    ScheduledFault scheduled;
    std::uint64_t at_ns = 0;
    bool over = false;
    bool undoes = false;  // ends a fault with a duration
  };

  trigger::TriggerHub& hub();
  Error follows_another() const;
  std::unique_ptr<PciFunction> make_function(const EmulatedCardSettings& card, unsigned endpoint);
  PciFunction* find(const std::string& id);
  void apply(Due& due, std::uint64_t now_ns);
  void end_later(const std::string& id, const Fault& fault);

  EmulatorSettings settings_;
  std::unique_ptr<trigger::TriggerAuthority> authority_;  // set if this process assigns triggers; else link_ is set
  std::unique_ptr<trigger::TriggerFollower> link_;
  std::unique_ptr<trigger::TriggerServer> server_;
  std::vector<std::unique_ptr<PciFunction>> functions_;
  std::vector<Due> schedule_;
  std::mutex ends_mutex_;
  std::vector<Due> ends_;  // ends of faults, to be scheduled
  std::uint64_t start_ns_ = 0;
  std::atomic<std::uint64_t> faults_{0};
  // One throttle for each kind: a schedule may make a thousand faults a second.
  std::array<base::LogThrottle, kFaultKinds> told_;
};

/// The function's address in full, "0000:3b:00.0", from any notation; `endpoint` is added to the function number. Error
/// emulator.bad_address.
Result<std::string> function_address(const std::string& text, unsigned endpoint = 0);

}  // namespace rodeo::emulator
