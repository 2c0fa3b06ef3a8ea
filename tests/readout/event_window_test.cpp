// The window of open events, without a worker's thread: the test is the window's host.
#include "readout/builder/event_window.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <bit>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "collecting_consumer.h"

using namespace rodeo;
using namespace rodeo::readout;

namespace {

struct NoExtractor final : TriggerExtractor {
  TriggerFields fields() const override { return {.has_bcid = true}; }
  std::uint32_t extract(const ChunkRun&, std::uint32_t, std::uint32_t, std::uint32_t*, std::uint16_t*) override { return 0; }
};

/// Two links, and a pool of four buffers.
class EventWindowTest : public testing::Test, private EventWindowHost {
 protected:
  EventWindowTest() {
    for (std::uint32_t i = 0; i < links_.size(); ++i)
      links_[i].header = std::bit_cast<std::uint64_t>(ChunkHeader{.link_id = 100 + i});
    auto store = SliceStore::create({.buffer_bytes = 256, .buffers = 4, .max_extensions = 0});
    EXPECT_TRUE(store) << store.error().message();
    window_.emplace(EventWindow::Settings{.size = 8}, std::move(*store), links_, nullptr, assembler_, progress_, held_,
                    static_cast<EventWindowHost&>(*this));
    window_->pool().own();
    assembler_.own(0);
    assembler_.start(1);
    window_->begin(1);
    window_->set_clocks(1000, 7);
  }
  ~EventWindowTest() override { consumer_.clear(); }

  void bring(Sequence sequence, std::size_t link, std::uint16_t bcid = 5) {
    EXPECT_TRUE(window_->append_one(sequence, links_[link], chunk_, 0, 0, bcid, 0));
  }
  std::vector<std::uint32_t> missing(const Fragment& fragment) const {
    std::vector<std::uint32_t> ids;
    fragment.for_each_link(fragment.missing_links, [&](std::uint32_t id) { ids.push_back(id); });
    return ids;
  }

  std::uint16_t fill_event(Sequence sequence, const GbtLink& link, std::span<const std::byte>, OpenEvent& event) override {
    named_.emplace_back(sequence, &link - links_.data());
    event.l1id = L1Id{static_cast<std::uint32_t>(sequence) + 40};
    return 0;
  }
  void on_cut(std::size_t bytes) override { cut_ += bytes; }
  void set_waiting(std::size_t with) override {
    waited_with_.push_back(with);
    was_held_.push_back(held_.load());
    if (with != Sequencer::kConsumers) return;
    for (std::size_t i = 0; i < consumer_.size(); ++i) missing_of_let_go_.push_back(missing(consumer_[i]));
    consumer_.clear();
  }

  const std::vector<std::byte> chunk_ = std::vector<std::byte>(40, std::byte{3});
  std::array<GbtLink, 2> links_;
  RobSequence rob_{Sequencer::Settings{}, nullptr};
  test::CollectingConsumer consumer_;
  Assembler assembler_{{.source_id = SourceId{1}, .link_ids = {100, 101}, .window = 8, .fragments_per_worker = 16},
                       rob_,
                       std::make_unique<NoExtractor>(),
                       consumer_};
  WorkerProgress progress_;
  std::atomic<bool> held_{false};
  std::size_t cut_ = 0;
  std::optional<EventWindow> window_;
  std::vector<std::pair<Sequence, std::ptrdiff_t>> named_;
  std::vector<std::size_t> waited_with_;
  std::vector<bool> was_held_;                                 // recorded at each call of set_waiting()
  std::vector<std::vector<std::uint32_t>> missing_of_let_go_;  // for each fragment that the consumer had to release
};

TEST_F(EventWindowTest, EventsAreNamedByTheirFirstChunkAndPublishedInOrder) {
  window_->advance(2);
  bring(2, 1);
  bring(2, 0);
  window_->publish_ready();
  EXPECT_EQ(consumer_.size(), 0u);
  bring(1, 0);
  bring(1, 1);
  window_->publish_ready();
  ASSERT_EQ(consumer_.size(), 2u);
  EXPECT_EQ(named_, (std::vector<std::pair<Sequence, std::ptrdiff_t>>{{2, 1}, {1, 0}}));
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(consumer_[i].l1id, L1Id{static_cast<std::uint32_t>(41 + i)});
    EXPECT_EQ(consumer_[i].chunks, 2u);
    EXPECT_EQ(consumer_[i].handed_over_ns, 7u);
    EXPECT_TRUE(consumer_[i].complete());
  }
  window_->publish_closed();
  EXPECT_EQ(progress_.passed.load(), 2u);
  EXPECT_EQ(window_->open_events(), 0u);
}

TEST_F(EventWindowTest, WhoSkipsAnEventIsMissingInIt) {
  window_->advance(1);
  bring(1, 1);
  window_->skip(1, 2);
  window_->publish_ready();
  ASSERT_EQ(consumer_.size(), 1u);
  EXPECT_EQ(consumer_[0].missing, 1u);
  EXPECT_EQ(missing(consumer_[0]), std::vector<std::uint32_t>{100});
}

TEST_F(EventWindowTest, AnEventWhoseBcidsDifferIsMarked) {
  window_->advance(1);
  bring(1, 0, 5);
  bring(1, 1, 6);
  window_->publish_ready();
  ASSERT_EQ(consumer_.size(), 1u);
  EXPECT_EQ(consumer_[0].status, fragment_status::kBcidMismatch);
}

TEST_F(EventWindowTest, AFullRingClosesItsOldestEventAsItIs) {
  window_->advance(1);
  bring(1, 0);
  window_->advance(8);
  EXPECT_EQ(consumer_.size(), 0u);
  window_->advance(9);
  ASSERT_EQ(consumer_.size(), 1u);
  EXPECT_EQ(missing(consumer_[0]), std::vector<std::uint32_t>{101});
  EXPECT_EQ(window_->oldest(), 2u);
}

TEST_F(EventWindowTest, WhereConsumersHaveAllBuffersItSaysSoUntilTheyGiveOneBack) {
  for (Sequence sequence = 1; sequence <= 4; ++sequence) {
    window_->advance(sequence);
    bring(sequence, 0);
    bring(sequence, 1);
    window_->publish_ready();
  }
  ASSERT_EQ(consumer_.size(), 4u);
  EXPECT_TRUE(waited_with_.empty());
  window_->advance(5);
  bring(5, 0);  // set_waiting() makes the consumer release its fragments
  EXPECT_EQ(waited_with_, (std::vector<std::size_t>{Sequencer::kConsumers, Sequencer::kNothing}));
  EXPECT_EQ(was_held_, (std::vector<bool>{true, false}));
}

TEST_F(EventWindowTest, WhereOpenEventsHaveAllBuffersTheOldestGoes) {
  window_->advance(5);
  for (Sequence sequence = 1; sequence <= 5; ++sequence) bring(sequence, 0);
  EXPECT_EQ(missing_of_let_go_, (std::vector<std::vector<std::uint32_t>>{{101}}));
  EXPECT_EQ(window_->oldest(), 2u);
}

}  // namespace
