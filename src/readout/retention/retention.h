// Retention: the books of all ROBs that one service serves.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "formats/fragment_request.h"
#include "readout/retention/fragment_book.h"

namespace rodeo::readout {

/// One thread at a time.
class Retention {
 public:
  /// Makes a book for each ROB, with the same `settings`. There is at least one ROB, and none is named twice.
  Retention(std::span<const SourceId> robs, const FragmentBook::Settings& settings);

  const std::vector<SourceId>& robs() const { return robs_; }
  /// The position of the ROB; empty if this service does not have it. Any thread.
  std::optional<std::size_t> rob(SourceId id) const;

  FragmentBook& book(std::size_t rob) { return books_[rob]; }
  const FragmentBook& book(std::size_t rob) const { return books_[rob]; }

  /// Says that the farm named this global id: see FragmentBook::align().
  void align(std::uint64_t run_at, bool newest = false);
  /// Says that a supervisor asked, and knows no position but this readout's.
  void set_alone();
  bool unplaced() const;
  void clear(const formats::ClearRequest& request, std::uint64_t now_ns);
  void advance(std::uint64_t now_ns);
  void end();
  void release_all();

  /// The kept fragments of any ROB with this global id or a higher one, in at most `most` ranges.
  formats::HoldingsReply holdings(std::uint64_t from, std::size_t most) const;

  /// The highest of the first ids of all ROBs with fragments: from this id on, all of them have fragments. Empty: not known
  /// yet.
  std::optional<std::uint64_t> first() const;

  std::uint64_t size() const;
  std::uint64_t bytes() const;
  /// The fill of the fullest book, 0 to 1.
  double fill() const;
  FragmentBook::Counts counts() const;

 private:
  std::vector<SourceId> robs_;
  std::vector<FragmentBook> books_;
};

}  // namespace rodeo::readout
