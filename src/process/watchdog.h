// Finds standing parts of a process: they wait for something and have done nothing for some seconds.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace rodeo::process {

/// The present state of a part of a process. `progress` changes with everything that the part does.
struct WatchedPart {
  std::string name;
  std::string waits_for;  ///< empty: nothing that could block the part for long
  std::uint64_t progress = 0;
};

struct StandingPart {
  std::string name;
  std::string waits_for;
  double seconds = 0;  ///< since the part was last seen to do something

  std::string text() const;  ///< "rodeo-full-0 of ROB 0x610001 has waited for consumers for 12 s"
};

/// The time is an argument; the class reads no clock. For one thread.
class Watchdog {
 public:
  static constexpr std::uint64_t kLimitNs = 5'000'000'000;

  explicit Watchdog(std::uint64_t limit_ns = kLimitNs) : limit_ns_(limit_ns) {}

  /// Call some times a second, with all parts. A part that is not in the list any more is forgotten.
  void check(std::span<const WatchedPart> parts, std::uint64_t now_ns);

  /// The standing parts, as of the last look.
  const std::vector<StandingPart>& standing() const { return standing_; }

  /// A sentence for each part that began to stand or continued since the last call.
  std::vector<std::string> take_messages();

 private:
  struct PartState {
    std::uint64_t progress = 0;
    std::uint64_t since_ns = 0;
    bool reported = false;
    bool present = false;
  };

  const std::uint64_t limit_ns_;
  std::map<std::string, PartState> parts_;
  std::vector<StandingPart> standing_;
  std::vector<std::string> messages_;
};

}  // namespace rodeo::process
