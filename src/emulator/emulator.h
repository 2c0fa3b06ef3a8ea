// An emulator process: cards from plain settings, the trigger authority that they follow, the schedule of faults, the report.
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
  std::filesystem::path directory;  ///< of sockets and locks; empty: <runtime directory>/cards
  base::IdlePolicy idle = base::IdlePolicy::sleep;
  std::vector<EmulatedCardSettings> cards;
  trigger::TriggerSettings trigger;  ///< wait_for 0: every function of this process
  std::string serve;                 ///< where others follow this process's triggers; empty: nowhere
  std::string follow;                ///< whose triggers this process follows, `trigger` unused; empty: its own
  std::string system;                ///< authority and followers must have the same
  std::string configuration_sha256;  ///< settings::configuration_sha256(), for its status
  std::chrono::milliseconds follower_timeout{60'000};  ///< after so long without a word a follower is dropped
  std::vector<ScheduledFault> faults;
  std::chrono::nanoseconds stop_limit = std::chrono::seconds{30};  ///< from the order to stop to the end
};

struct EmulatorReport {
  double seconds = 0;
  double cpu_seconds = 0;
  trigger::TriggerReport trigger = {};
  std::vector<FunctionReport> functions = {};
  std::uint64_t faults = 0;
};

/// Runs from the constructor (throws SetupError) to the destructor. Calls from one thread, inject() and report() from any.
class Emulator {
 public:
  explicit Emulator(EmulatorSettings settings);
  ~Emulator();

  /// Faults whose time has come. To be called again before next_poll() has passed.
  void poll();
  /// A few milliseconds while data are taken, here or by others that follow; longer while nothing goes on.
  std::chrono::milliseconds next_poll() const;

  /// `id` is the address of a function ("3b:00.0"), or the name of a card (endpoint 0), or name:endpoint. Errors:
  /// emulator.no_such_card, emulator.no_such_fault (the card has no such fault, link, temperature or duration; it is removed, or there).
  /// A fault with a duration ends by itself, at a poll().
  Result<void> inject(const std::string& id, const Fault& fault);

  /// See TriggerAuthority::hold_run() and release(). `accepted`: triggers so far. Error emulator.follows in a process that follows another's triggers.
  Result<std::uint64_t> hold_triggers();
  Result<void> release_triggers(std::optional<unsigned> wait_for);
  /// See TriggerAuthority::advance_marks(). The same error.
  Result<trigger::TriggerAuthority::Next> advance_marks(const trigger::TriggerAuthority::Advance& advance);

  /// Ends the DMA of all functions, for good: a report is final then. What was under way is lost under a name; registers still answer.
  void finish();

  /// While DMA goes on, its functions are each of a moment of its own.
  EmulatorReport report() const;
  /// Since the begin.
  double seconds() const;
  /// The trigger limit is reached and everybody has what there is.
  bool ended() const { return authority_ && authority_->ended(); }
  /// What makes it useless to go on: the authority that it should follow refuses it.
  std::optional<Error> failure() const { return link_ ? link_->refused() : std::nullopt; }
  /// Where followers find it; empty if it does not serve.
  std::string serves_at() const { return server_ ? server_->where() : std::string(); }
  const EmulatorSettings& settings() const { return settings_; }

 private:
  struct Due {
    ScheduledFault scheduled;
    std::uint64_t at_ns = 0;
    bool over = false;
    bool undoes = false;  // ends a fault of some duration
  };

  trigger::TriggerHub& hub();
  Error follows_another() const;
  std::unique_ptr<PciFunction> make_function(const EmulatedCardSettings& card, unsigned endpoint);
  PciFunction* find(const std::string& id);
  void apply(Due& due, std::uint64_t now_ns);
  void end_later(const std::string& id, const Fault& fault);

  EmulatorSettings settings_;
  std::unique_ptr<trigger::TriggerAuthority> authority_;  // or
  std::unique_ptr<trigger::TriggerFollower> link_;
  std::unique_ptr<trigger::TriggerServer> server_;
  std::vector<std::unique_ptr<PciFunction>> functions_;
  std::vector<Due> schedule_;
  std::mutex ends_mutex_;
  std::vector<Due> ends_;  // of faults, for the schedule
  std::uint64_t start_ns_ = 0;
  std::atomic<std::uint64_t> faults_{0};
  std::array<base::LogThrottle, kFaultKinds> told_;  // by kind: a schedule may make a thousand a second
};

/// "0000:3b:00.0" from what people write; the function number plus `endpoint`. Error emulator.bad_address.
Result<std::string> function_address(const std::string& text, unsigned endpoint = 0);

}  // namespace rodeo::emulator
