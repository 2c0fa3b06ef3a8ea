// Names what stands: a part of a process that waits for something and has done nothing for a while.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace rodeo::process {

/// A part of a process, as it is now. Its progress changes with whatever it does.
struct WatchedPart {
  std::string name;
  std::string waits_for;  ///< empty: nothing that could keep it for long
  std::uint64_t progress = 0;
};

struct StandingPart {
  std::string name;
  std::string waits_for;
  double seconds = 0;  ///< since it was seen to do something

  std::string text() const;  ///< "rodeo-full-0 of ROB 0x610001 waits for consumers for 12 s"
};

/// Pure: the time is an argument. One thread.
class Watchdog {
 public:
  static constexpr std::uint64_t kLimitNs = 5'000'000'000;

  explicit Watchdog(std::uint64_t limit_ns = kLimitNs) : limit_ns_(limit_ns) {}

  /// Some times a second, with all parts. A part that is not named any more is forgotten.
  void look(std::span<const WatchedPart> parts, std::uint64_t now_ns);

  /// What stands, as of the last look.
  const std::vector<StandingPart>& standing() const { return standing_; }

  /// A sentence for each part that has begun to stand since the last call, or that goes on.
  std::vector<std::string> take_messages();

 private:
  struct Seen {
    std::uint64_t progress = 0;
    std::uint64_t since_ns = 0;
    bool told = false;
    bool there = false;
  };

  const std::uint64_t limit_ns_;
  std::map<std::string, Seen> seen_;
  std::vector<StandingPart> standing_;
  std::vector<std::string> messages_;
};

}  // namespace rodeo::process
