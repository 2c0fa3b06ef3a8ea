// Retention: the books of all ROBs that one service hands out.
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
  /// At least one ROB, none twice; `settings` are those of each.
  Retention(std::span<const SourceId> robs, const FragmentBook::Settings& settings);

  const std::vector<SourceId>& robs() const { return robs_; }
  /// Nothing: it is none of ours. Any thread.
  std::optional<std::size_t> rob(SourceId id) const;

  FragmentBook& book(std::size_t rob) { return books_[rob]; }
  const FragmentBook& book(std::size_t rob) const { return books_[rob]; }

  /// The farm named this global id: see FragmentBook::align().
  void align(std::uint64_t run_at);
  void clear(const formats::ClearRequest& request, std::uint64_t now_ns);
  void advance(std::uint64_t now_ns);
  void end();
  void let_all_go();

  /// What is kept of any ROB, from this global id on, in at most `most` ranges.
  formats::HoldingsReply holdings(std::uint64_t from, std::size_t most) const;

  /// No ROB brings a lower id, and all that bring something have one from here on. Nothing: that is not known yet.
  std::optional<std::uint64_t> first() const;

  std::uint64_t size() const;
  std::uint64_t bytes() const;
  /// Of the ROB that has most, 0 to 1.
  double fill() const;
  FragmentBook::Counts counts() const;

 private:
  std::vector<SourceId> robs_;
  std::vector<FragmentBook> books_;
};

}  // namespace rodeo::readout
