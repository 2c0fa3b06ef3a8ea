// Which events of a file are not there: from the numbers of those that are, and from the end record.
#pragma once

#include <cstdint>
#include <optional>

#include "formats/event_file_records.h"
#include "formats/findings.h"

namespace rodeo::storage {

/// Told of the events of one file in order. A number may be damaged as well: one that is too high is believed if those behind it go on from there, or
/// the end record does, or something before it could not be read. The first that is named is not believed if those behind it are lower.
class EventNumbers {
 public:
  /// Gaps are added to `findings`, each at the place of the event behind it.
  explicit EventNumbers(formats::Findings& findings) : findings_(findings) {}

  /// The first event has this number; without that, it is the first that is named.
  void begin_at(std::uint32_t number) {
    begin_near(number);
    confirmed_ = true;
  }

  /// A whole event; nothing if there is no separator in front of it. `damage`: something before it could not be read.
  void found(std::optional<std::uint32_t> number, std::uint64_t offset, bool damage);

  /// A separator whose event is not whole.
  void damaged(std::uint32_t number);

  /// No event follows. `unread` are the bytes between the last one and `offset`, where the end record is or the file ends.
  void finish(const std::optional<formats::FileEnd>& end, std::uint64_t offset, std::uint64_t unread);

  /// Events that are not there.
  std::uint64_t missing() const { return missing_; }

 private:
  struct Jump {
    std::uint64_t to = 0;
    std::uint64_t offset = 0;
    bool damage = false;
    std::uint64_t unnamed = 0;  // events without number behind it
  };

  void begin_near(std::uint32_t number) { last_ = first_ = std::uint64_t{number} - 1; }
  bool jumps_back() const { return jump_->to <= *last_; }
  void settle(bool believed);
  void add_gap(std::uint64_t next, std::uint64_t offset);

  formats::Findings& findings_;
  std::optional<std::uint64_t> last_;  // number of the last event that has one
  std::uint64_t first_ = 0;            // number before the first event
  bool confirmed_ = false;             // it is known, or a second number goes on from the first
  std::uint64_t unnamed_ = 0;          // events since the last that has a number
  std::uint64_t damaged_ = 0;          // number of a separator since then
  std::optional<Jump> jump_;           // to a number that is not believed yet
  std::uint64_t missing_ = 0;
};

}  // namespace rodeo::storage
