// Finds the missing events of a file, from the numbers of the present events and the end record.
#pragma once

#include <cstdint>
#include <optional>

#include "formats/event_file_records.h"
#include "formats/findings.h"

namespace rodeo::storage {

/// Receives the events of one file in order. Numbers may be damaged, too. A number that is too high is accepted if later
/// numbers or the end record continue it, or if bytes before it were unreadable. The first number is ignored if later
/// numbers are lower.
class EventNumbers {
 public:
  /// Adds gaps to `findings`, each at the offset of the next event.
  explicit EventNumbers(formats::Findings& findings) : findings_(findings) {}

  /// Sets the number of the first event; otherwise the first number found is used.
  void begin_at(std::uint32_t number) {
    begin_near(number);
    confirmed_ = true;
  }

  /// Reports a whole event; `number`: empty if it has no separator. `damage`: bytes before it were unreadable.
  void found(std::optional<std::uint32_t> number, std::uint64_t offset, bool damage);

  /// Reports a separator whose event is damaged.
  void damaged(std::uint32_t number);

  /// Ends the file. `unread`: bytes between the last event and `offset`, the place of the end record or the end of the file.
  void finish(const std::optional<formats::FileEnd>& end, std::uint64_t offset, std::uint64_t unread);

  /// Number of missing events.
  std::uint64_t missing() const { return missing_; }

 private:
  struct Jump {
    std::uint64_t to = 0;
    std::uint64_t offset = 0;
    bool damage = false;
    std::uint64_t unnamed = 0;  // events without a number after this one
  };

  void begin_near(std::uint32_t number) { last_ = first_ = std::uint64_t{number} - 1; }
  bool jumps_back() const { return jump_->to <= *last_; }
  void end_jump(bool believed);
  void add_gap(std::uint64_t next, std::uint64_t offset);

  formats::Findings& findings_;
  std::optional<std::uint64_t> last_;  // number of the last event with a number
  std::uint64_t first_ = 0;            // number before the first event
  bool confirmed_ = false;             // the first number was set, or a second number continued it
  std::uint64_t unnamed_ = 0;          // events without a number after the last event with a number
  std::uint64_t damaged_ = 0;          // number of a damaged separator after the last event
  std::optional<Jump> jump_;           // a number that is not accepted yet
  std::uint64_t missing_ = 0;
};

}  // namespace rodeo::storage
