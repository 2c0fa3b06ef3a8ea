// Links that were silent until their ids repeat, or that began late: they are in the right period, or flagged.
#include <map>

#include "readout/sequence_rob.h"

namespace rodeo::test {
namespace {

using namespace sequencing;

std::uint16_t bcid_of(std::uint64_t event) { return static_cast<std::uint16_t>((event * 0x9e3779b97f4a7c15U >> 40) % 3564); }

constexpr std::uint64_t kOpen = 4096;

/// Links that send events 0, 1, 2, ... with ids of few bits and random BCIDs. The events of the last window are open or
/// known.
class LongRun : public Rob, private readout::EventBcids {
 public:
  LongRun(std::size_t links, std::uint8_t bits, bool full = false, bool has_bcid = true, std::size_t readers = 1)
      : Rob(links, settings_of(bits, has_bcid), full, readers), links_(links), bits_(bits), full_(full) {
    if (!full) {
      for (std::size_t reader = 0; reader < readers; ++reader) sequencer.set_bcids(reader, *this);
    }
  }

  /// All links but `silent` send the events from `from` to `to`. The function checks the places of taken chunks.
  void go(std::uint64_t from, std::uint64_t to, std::size_t silent = ~std::size_t{0}) {
    for (std::uint64_t event = from; event < to; ++event) {
      for (std::size_t link = 0; link < links_; ++link) {
        if (link != silent && (!full_ || event % links_ == link)) bring(link, event);
      }
    }
  }
  /// The link's events of this range come in one block.
  void bring_run(std::size_t link, std::uint64_t from, std::uint64_t to) {
    const std::uint64_t step = full_ ? links_ : 1;
    if (full_) from += (link + links_ - from % links_) % links_;
    if (from >= to) return;
    in_run(link, (to - from + step - 1) / step * step, [&] {
      for (std::uint64_t event = from; event < to; event += step) bring(link, event);
    });
  }
  void bring(std::size_t link, std::uint64_t event, std::uint16_t wrong = 0) {
    // Events that the silent link lacks stay open.
    if (begun_ && event > kOpen) oldest = std::max(oldest, sequencer.run_first() + event - kOpen);
    const std::uint64_t period = std::uint64_t{1} << bits_;
    offer(link, static_cast<std::uint32_t>(event % period), static_cast<std::uint16_t>((bcid_of(event) + wrong) % 3564));
    begun_ = sequencer.begun();
    // The place where the link is now, if the chunk was not put aside.
    const auto at = this->link(link).position() - this->link(link).stride - sequencer.run_first();
    for (const auto& text : split(got(link))) {
      ++chunks[text.back() == '?' ? "flagged" : text.find_first_of("0123456789") != std::string::npos ? "taken" : text];
      if (text.find_first_of("0123456789") == std::string::npos || text.back() == '?') continue;
      if (std::stoull(text) % period == event % period && std::stoull(text) != event) ++wrong_places;
    }
    came_.try_emplace(at, bcid_of(event));
  }

  std::map<std::string, std::uint64_t> chunks;  // number of chunks by result
  std::uint64_t wrong_places = 0;               // without flag

 private:
  static Sequencer::Settings settings_of(std::uint8_t bits, bool has_bcid) {
    Sequencer::Settings of = settings(bits);
    of.has_bcid = has_bcid;
    of.window = 2 * kOpen;
    return of;
  }
  static std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find(' ', at), text.size());
      parts.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    return parts;
  }
  std::optional<std::uint16_t> bcid(Sequence number) const override {
    const auto known = came_.find(number - sequencer.run_first());
    return known == came_.end() ? std::nullopt : std::optional(known->second);
  }

  const std::size_t links_;
  const std::uint8_t bits_;
  const bool full_;
  bool begun_ = false;
  std::map<Sequence, std::uint16_t> came_;
};

// Silences near each multiple of the period of 8 bits, up to twenty.
std::vector<std::uint64_t> silences() {
  std::vector<std::uint64_t> all;
  for (const std::uint64_t periods : {1, 2, 3, 7, 20}) {
    for (const std::int64_t more : {-128, -6, 0, 1, 6, 64}) all.push_back(256 * periods + static_cast<std::uint64_t>(more));
  }
  return all;
}

// Silences from half a period to twenty periods, in a group of FULL mode and in a ROB of GBT mode.
TEST(SequencePlaces, ALinkThatWasSilentReturnsInTheRightPeriod) {
  for (const bool full : {true, false}) {
    for (const std::size_t links : {4, 6}) {
      for (const std::uint64_t silent : silences()) {
        SCOPED_TRACE(testing::Message() << (full ? "FULL, " : "GBT, ") << links << " links, silent for " << silent);
        LongRun run(links, 8, full, false);
        run.go(0, 600);
        run.go(600, 600 + silent, 1);
        run.chunks.clear();
        run.go(600 + silent, 1000 + silent);
        EXPECT_EQ(run.wrong_places, 0);
        EXPECT_EQ(run.chunks["taken"], full ? 400 : 400 * links);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(SequencePlaces, ALinkThatBeginsLateIsInTheRightPeriod) {
  for (const bool full : {true, false}) {
    for (const std::uint64_t late : silences()) {
      SCOPED_TRACE(testing::Message() << (full ? "FULL, " : "GBT, ") << "late by " << late);
      LongRun run(4, 8, full, false);
      run.go(0, late, 1);
      run.chunks.clear();
      run.go(late, late + 400);
      EXPECT_EQ(run.wrong_places, 0);
      EXPECT_EQ(run.chunks["taken"], full ? 400 : 1600);
      if (testing::Test::HasFailure()) return;
    }
  }
}

// Epochs of 977 triggers; ids of 16 bits do not show the resets.
TEST(SequencePlaces, ALinkThatWasSilentOverResetsReturnsInTheRightEpoch) {
  for (const bool full : {true, false}) {
    for (const std::size_t links : {2, 6}) {
      for (std::uint64_t silent = 500; silent < 4000; silent += 193) {
        SCOPED_TRACE(testing::Message() << (full ? "FULL, " : "GBT, ") << links << " links, silent for " << silent);
        Rob rob(links, settings(16), full);
        for (std::uint64_t event = 0; event < 600 + silent + 3000; ++event) {
          if (rob.sequencer.begun()) rob.oldest = rob.link(0).position() - std::min<Sequence>(kWindow / 2, event + 1);
          for (std::size_t link = 0; link < links; ++link) {
            const bool off = link == 1 && event >= 600 && event < 600 + silent;
            if (!off && (!full || event % links == link)) rob.offer(link, static_cast<std::uint32_t>(event % 977));
          }
          rob.oldest = std::max(rob.oldest, rob.sequencer.run_first());
        }
        EXPECT_EQ(rob.link(1).resets, rob.link(0).resets);
        EXPECT_LE(std::max(rob.link(0).position(), rob.link(1).position()) -
                      std::min(rob.link(0).position(), rob.link(1).position()),
                  links);
        EXPECT_FALSE(rob.link(1).doubtful);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

// The silent link's next id comes again, because the other links have just crossed the reset.
TEST(SequencePlaces, ALinkThatWasSilentForAnEpochReturnsJustBehindTheReset) {
  Rob rob(3, settings(16));
  const auto bring = [&](std::uint32_t from, std::uint32_t to, std::size_t links) {
    for (std::uint32_t event = from; event < to; ++event) {
      for (std::size_t link = 0; link < links; ++link) rob.offer(link, event % 560);
    }
  };
  bring(0, 580, 3);
  bring(580, 1139, 2);
  rob.got(2);
  bring(1139, 1142, 3);
  EXPECT_EQ(rob.got(2), "2:19 2:20 2:21");
}

// The reset counter comes round while one link of a group or ROB is silent.
TEST(SequencePlaces, ALinkThatWasSilentWhileTheResetCounterComesRoundReturnsInTheRightRound) {
  constexpr std::uint64_t kEpoch = 61;
  for (const bool full : {true, false}) {
    for (const std::uint64_t resets : {130, 200, 256, 300}) {
      Rob rob(3, settings(32), full);
      const std::uint64_t back = 600 + resets * kEpoch + 7;
      for (std::uint64_t event = 0; event < back + 2000; ++event) {
        if (rob.sequencer.begun()) rob.oldest = rob.link(0).position() - std::min<Sequence>(kWindow / 2, event + 1);
        rob.oldest = std::max(rob.oldest, rob.sequencer.run_first());
        for (std::size_t link = 0; link < 3; ++link) {
          const bool off = link == 1 && event >= 600 && event < back;
          const auto id = static_cast<std::uint32_t>((event / kEpoch & 0xff) << 24 | event % kEpoch);
          if (!off && (!full || event % 3 == link)) rob.offer(link, id);
        }
        if (event == back + 100) rob.got(1);
      }
      EXPECT_EQ(rob.link(1).resets, rob.link(0).resets) << resets << full;
      EXPECT_FALSE(rob.link(1).doubtful) << resets << full;
      const std::string got = rob.got(1);
      EXPECT_EQ(got.find_first_of("?dlo"), std::string::npos) << resets << full << got.substr(0, 300);
    }
  }
}

// Another thread reads the other links, so they prove nothing: the link is flagged until BCIDs have proved its place.
TEST(SequencePlaces, WhereNoOtherLinkTellsBcidsDoAndAtMost64ChunksAreFlagged) {
  LongRun run(2, 16, false, true, 2);
  run.go(0, 300);
  run.link(0).lost = true;
  run.link(0).end = 0;
  run.chunks.clear();
  for (std::uint64_t event = 300; event < 600; ++event) {
    run.bring(1, event);
    run.bring(0, event);
  }
  EXPECT_EQ(run.wrong_places, 0);
  EXPECT_LE(run.chunks["flagged"], 64);
  EXPECT_EQ(run.chunks["taken"] + run.chunks["flagged"], 600);
  EXPECT_FALSE(run.link(0).doubtful);
}

TEST(SequencePlaces, ALinkWithoutPeersAndBcidsStaysFlagged) {
  LongRun run(1, 8, false, false);
  run.go(0, 300);
  run.link(0).lost = true;
  run.link(0).end = 0;
  run.chunks.clear();
  run.go(300, 500);
  EXPECT_EQ(run.chunks["flagged"], 200);
  EXPECT_EQ(run.chunks["taken"], 0);
}

// The BCIDs of a link fit other events. It is not moved if its peers confirm its place.
TEST(SequencePlaces, AConstantOffsetOfTheBcidIsToldAndMovesNothing) {
  LongRun run(4, 8);
  run.go(0, 300);
  run.sequencer.suspect(2);
  run.settle();
  for (std::uint64_t event = 300; event < 1000; ++event) {
    for (std::size_t link = 0; link < 4; ++link) run.bring(link, event, link == 2 ? 5 : 0);
  }
  EXPECT_EQ(run.wrong_places, 0);
  EXPECT_EQ(run.link(2).position(), run.link(0).position());
  const auto told = run.sequencer.take_place_change(2);
  EXPECT_TRUE(told.out_of_step);
  EXPECT_EQ(told.constant, 5);
  EXPECT_EQ(told.moved, 0);
}

// Data come in blocks with many chunks: when the builder reads them, one link is far ahead of the others.
TEST(SequencePlaces, AHealthyRunIsNeverInDoubt) {
  for (const auto bits : std::initializer_list<std::uint8_t>{8, 10}) {
    for (const bool full : {false, true}) {
      for (const std::size_t links : {2, 4}) {
        for (const std::uint32_t at_once : {1U, 24U, 100U, 150U, 300U}) {
          LongRun run(links, bits, full, !full);
          for (std::uint64_t first = 0; first < 10'000; first += at_once) {
            for (std::size_t link = 0; link < links; ++link) run.bring_run(link, first, first + at_once);
          }
          EXPECT_EQ(run.chunks["flagged"], 0)
              << int{bits} << " bits, " << links << " links, " << at_once << (full ? " FULL" : "");
          EXPECT_EQ(run.wrong_places, 0) << int{bits} << " bits, " << links << " links, " << at_once
                                         << (full ? " FULL" : "");
        }
      }
    }
  }
}

// The same test with blocks that are not in step, and more chunks in those of one link.
TEST(SequencePlaces, AHealthyRunWithBlocksOfSeveralLengthsIsNeverInDoubt) {
  LongRun run(3, 8);
  const std::uint32_t lengths[] = {25, 60, 90};
  std::uint64_t read[] = {0, 0, 0};
  for (std::uint64_t sent = 0; sent < 10'000; ++sent) {
    for (std::size_t link = 0; link < 3; ++link) {
      if (sent - read[link] < lengths[link]) continue;
      run.bring_run(link, read[link], sent);
      read[link] = sent;
    }
  }
  EXPECT_EQ(run.chunks["flagged"], 0);
  EXPECT_EQ(run.wrong_places, 0);
}

// The sequencer notices a silence of about one period even with long blocks.
TEST(SequencePlaces, ASilenceBetweenLongBlocksIsNoticed) {
  for (const std::uint32_t silent : {250U, 256U, 257U, 300U, 512U}) {
    LongRun run(3, 8);
    const std::uint32_t at_once = 100;
    for (std::uint64_t first = 0; first < 20'000; first += at_once) {
      for (std::size_t link = 0; link < 3; ++link) {
        if (link == 1 && first >= 10'000 && first < 10'000 + silent) continue;
        run.bring_run(link, link == 1 && first == 10'000 + (silent + 99) / 100 * 100 ? 10'000 + silent : first,
                      first + at_once);
      }
    }
    EXPECT_EQ(run.wrong_places, 0) << silent;
    EXPECT_LE(run.chunks["flagged"], 64) << silent;
  }
}

}  // namespace
}  // namespace rodeo::test
