// The links of one ROB or group and their Sequencer, for tests of single cases.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "readout/sequence/event_set.h"
#include "readout/sequence/sequencer.h"

namespace rodeo::test::sequencing {

using readout::Decision;
using readout::EventSet;
using readout::IdFormat;
using readout::LinkSequence;
using readout::Sequencer;
using readout::Verdict;

inline IdFormat ids_of(std::uint8_t bits) {
  TriggerFields fields;
  fields.l1id_bits = std::min<std::uint8_t>(bits, 24);
  fields.has_ecr = bits == 32;
  return IdFormat(fields);
}

inline constexpr std::uint64_t kReach = 16;
inline constexpr std::uint64_t kStep = 8;
inline constexpr std::uint64_t kWindow = 256;
inline constexpr std::uint64_t kTimeout = 1000;
inline constexpr std::size_t kAside = 512;

inline Sequencer::Settings settings(std::uint8_t bits = 32) {
  return {.format = ids_of(bits),
          .has_bcid = false,
          .reach = kReach,
          .step = kStep,
          .window = kWindow,
          .timeout_ns = kTimeout,
          .aside = kAside,
          .listed = false,
          .several_threads = false,
          .list_entries = 0};
}

inline Sequencer::Settings listed(std::uint8_t bits = 32) {
  Sequencer::Settings of = settings(bits);
  of.listed = true;
  of.list_entries = 4096;
  return of;
}

/// The links of one ROB or group, and the decisions on their chunks: "5" is a chunk taken for index 5 of the first segment,
/// "1:5" of the next segment, "5?" is flagged; other chunks have the reason.
class Rob {
 public:
  /// Each of `readers` has the same number of successive links. The last of `threads` has all remaining readers.
  Rob(std::size_t links, const Sequencer::Settings& settings, bool full = false, std::size_t readers = 1,
      std::size_t threads = 64)
      : sequencer(settings), came(settings.window), got_(links) {
    for (std::size_t i = 0; i < links; ++i) {
      links_.push_back(std::make_unique<LinkSequence>());
      const std::size_t reader = i * readers / links;
      sequencer.add(*links_.back(), full ? static_cast<std::uint16_t>(links) : 1, reader, std::min(reader, threads - 1));
    }
    if (full) sequencer.set_events(came);
    full_ = full;
  }

  void offer(std::size_t link, std::uint32_t id, std::uint16_t bcid = 0) {
    const Sequence before = links_[link]->position();
    if (!in_run_) links_[link]->begin_block(links_[link]->stride);
    sequencer.offer(link, id, bcid, now, oldest, decisions_);
    if (!in_run_) links_[link]->end_block(before);
    collect(link);
    if (version_ != sequencer.version()) settle();
  }
  /// Calls `offer`, which brings chunks of this link; they form one block of this number of events.
  template <typename F>
  void in_run(std::size_t link, std::uint64_t events, const F& offer) {
    const Sequence before = links_[link]->position();
    links_[link]->begin_block(events);
    in_run_ = true;
    offer();
    in_run_ = false;
    links_[link]->end_block(before);
  }
  void offer(std::size_t link, std::initializer_list<std::uint32_t> ids) {
    for (const std::uint32_t id : ids) offer(link, id);
  }
  void settle() {
    do {
      version_ = sequencer.version();
      for (std::size_t i = 0; i < links_.size(); ++i) {
        sequencer.rejudge(i, now, oldest, decisions_);
        collect(i);
      }
    } while (version_ != sequencer.version());
  }
  /// Decides waiting chunks.
  void let_time_pass(std::uint64_t ns) {
    now += ns;
    settle();
  }
  /// Checks the decisions on link 0's waiting chunks after a time-out, in which link 1, which begins at 10, has continued.
  void expect_after_time_out(std::string_view decided) {
    now += kTimeout;
    offer(1, 10);
    settle();
    EXPECT_EQ(got(0), "");
    let_time_pass(1);
    EXPECT_EQ(got(0), decided);
  }
  void finish() {
    for (int round = 0; round < 2; ++round) {
      for (std::size_t i = 0; i < links_.size(); ++i) {
        sequencer.finish(i, now, oldest, decisions_);
        collect(i);
      }
    }
    for (std::size_t i = 0; i < links_.size(); ++i) {
      sequencer.give_up(i, decisions_);
      collect(i);
    }
  }
  void remove(std::size_t link) {
    sequencer.remove(link, decisions_);
    collect(link);
  }
  /// All links send these events; in FULL mode, in turn.
  void run(std::uint32_t from, std::uint32_t to) {
    for (std::uint32_t id = from; id < to; ++id) {
      for (std::size_t i = 0; i < links_.size(); ++i) {
        if (!full_ || id % links_.size() == i) offer(i, id);
      }
    }
    for (std::string& got : got_) got.clear();
  }
  void list(std::uint32_t id, std::uint16_t bcid = 0) {
    EXPECT_TRUE(sequencer.announce({id, bcid, 0}, now, oldest));
    if (version_ != sequencer.version()) settle();
  }
  void list_run(std::uint32_t from, std::uint32_t to) {
    for (std::uint32_t id = from; id < to; ++id) list(id, static_cast<std::uint16_t>(id & 0xfff));
  }
  std::string got(std::size_t link) { return std::exchange(got_[link], {}); }
  LinkSequence& link(std::size_t i) { return *links_[i]; }

  Sequencer sequencer;
  EventSet came;
  std::uint64_t now = 1;
  Sequence oldest = 0;

 private:
  void collect(std::size_t link) {
    if (oldest == 0 && sequencer.begun()) {
      oldest = sequencer.run_first();
      came.begin(oldest);
    }
    for (const Decision& decision : decisions_) {
      constexpr const char* kReasons[] = {"", "late", "duplicate", "out", "unlisted"};
      std::string text = kReasons[static_cast<std::size_t>(decision.verdict)];
      if (decision.verdict == Verdict::accept) {
        if (full_) came.add(decision.sequence);
        if (first_ == 0) first_ = decision.resets;
        if (decision.resets != first_) text = std::to_string(decision.resets - first_) + ":";
        text += std::to_string(decision.sequence - decision.base) + (decision.doubtful || decision.unproven ? "?" : "");
      }
      got_[link] += (got_[link].empty() ? "" : " ") + text;
    }
    decisions_.clear();
  }

  std::vector<std::unique_ptr<LinkSequence>> links_;
  std::vector<Decision> decisions_;
  std::vector<std::string> got_;
  std::uint64_t version_ = 0;
  std::uint32_t first_ = 0;
  bool full_ = false;
  bool in_run_ = false;
};

/// Links that have sent the events 0 to 9.
struct Started : Rob {
  explicit Started(std::size_t links = 2, const Sequencer::Settings& of = settings(), bool full = false,
                   std::size_t readers = 1, std::size_t threads = 64)
      : Rob(links, of, full, readers, threads) {
    run(0, 10 - static_cast<std::uint32_t>(full ? 10 % links : 0));
  }
};

}  // namespace rodeo::test::sequencing
