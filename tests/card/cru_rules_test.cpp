// The rules that hold only for a CRU (table in README.md), with an emulated card.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "bench/card/data_check.h"
#include "card/operations/user_logic.h"
#include "emulated_card.h"

namespace rodeo::card {
namespace {

using emulator::FaultKind;
namespace cru = card_registers::cru;

class EmulatedCru : public EmulatedCard {
 protected:
  void SetUp() override { set_up(kCru); }
  void stick(std::initializer_list<unsigned> links) {
    for (const unsigned link : links) inject(FaultKind::stuck_fifo, link);
  }
};

TEST_F(EmulatedCru, QueuesAreTheRegistersDepthTimesTheLinks) {
  links_ = 0b1011;
  open();
  const auto depth = card_->read(cru::reg("superpage_fifo_depth"));
  ASSERT_TRUE(depth);
  EXPECT_EQ(channel_->transfer_capacity(), *depth * 3U);
  EXPECT_EQ(channel_->ready_capacity(), *depth * 16U);
}

TEST_F(EmulatedCru, TheNextSuperpageGoesToTheLinkWithTheFewest) {
  links_ = 0b111;
  stick({0, 1, 2});
  open_and_start();
  for (int i = 0; i < 7; ++i) ASSERT_EQ(push(), PushStatus::done);
  ASSERT_TRUE(channel_->fill());
  stick({1});  // injected again, the fault ends: link 1 runs
  wait_ready(2);
  for (const Superpage& page : pop_all()) EXPECT_EQ(page.link, 1);
  // Link 0 has 3 superpages, link 2 has 2, link 1 has none: it gets the next ones.
  stick({1});
  for (int i = 0; i < 2; ++i) ASSERT_EQ(push(), PushStatus::done);
  ASSERT_TRUE(channel_->fill());
  stick({0, 1, 2});
  wait_ready(7);
  std::map<int, int> per_link;
  for (const Superpage& page : pop_all()) ++per_link[page.link];
  EXPECT_EQ(per_link, (std::map<int, int>{{0, 3}, {1, 2}, {2, 2}}));
}

TEST_F(EmulatedCru, ReadySuperpagesComeOfEachLinkInTurn) {
  links_ = 0b111;
  stick({0, 1, 2});
  open_and_start();
  for (int i = 0; i < 6; ++i) ASSERT_EQ(push(), PushStatus::done);
  ASSERT_TRUE(channel_->fill());
  stick({2, 1, 0});
  ASSERT_TRUE(eventually([&] {
    std::uint32_t done = 0;
    for (unsigned link = 0; link < 3; ++link) done += card_->read(cru::reg("superpages_done"), link).value_or(0);
    return done == 6;
  }));
  wait_ready(6);
  std::vector<int> links;
  for (const Superpage& page : pop_all()) links.push_back(page.link);
  EXPECT_EQ(links, (std::vector<int>{0, 1, 2, 0, 1, 2}));
}

TEST_F(EmulatedCru, SizesFitInto24Bits) {
  memory_ = DmaMemory::create(32 << 20).value();
  open_and_start();
  EXPECT_EQ(push(0, 16 << 20), PushStatus::too_large);
  constexpr std::uint32_t kLargest = (16 << 20) - kSuperpageGranule;
  ASSERT_EQ(push(0, kLargest), PushStatus::done);
  wait_ready(1);
  EXPECT_EQ(channel_->pop()->received, kLargest);
}

TEST_F(EmulatedCru, ASuperpageThatIsNotFullHasItsTrueSize) {
  links_ = 1;
  open_and_start({{.source = DataSource::fee, .links = 1}});
  for (int i = 0; i < 8; ++i) ASSERT_EQ(push(), PushStatus::done);
  wait_ready(4);
  auto check =
      bench::make_data_check(*card_, 0, {.source = DataSource::fee, .superpage_bytes = kSize, .superpages = kPieces});
  ASSERT_TRUE(check);
  for (const Superpage& page : pop_all()) {
    EXPECT_LE(page.received, page.bytes);
    EXPECT_GT(page.received, 0U);
    (*check)->check(page, bytes_of(page));
  }
  EXPECT_EQ((*check)->errors(), 0U) << ((*check)->findings().empty() ? "" : (*check)->findings().front());
}

TEST_F(EmulatedCru, AnEnabledLinkThatBringsNothingIsAnErrorOfABench) {
  for (const std::uint64_t absent : {0U, 1U}) {
    if (absent != 0) inject(FaultKind::link_down, 2);
    open_and_start({{.source = DataSource::fee, .links = 0b111}});
    for (int i = 0; i < 15; ++i) ASSERT_EQ(push(), PushStatus::done);
    wait_ready(absent != 0 ? 10 : 15);
    ASSERT_TRUE(channel_->stop());
    bench::DataCheckSettings settings{.source = DataSource::fee, .superpage_bytes = kSize, .superpages = 15, .links = 0b111};
    auto check = bench::make_data_check(*card_, 0, settings);
    ASSERT_TRUE(check);
    for (const Superpage& page : pop_all()) {
      if (page.ready) (*check)->check(page, bytes_of(page));
    }
    (*check)->finish();
    EXPECT_EQ((*check)->errors(), absent) << testing::PrintToString((*check)->findings());
    if (absent != 0) {
      EXPECT_THAT((*check)->findings(), testing::ElementsAre("silent_links: link 2 brought nothing"));
    }
    channel_.reset();
  }
}

TEST_F(EmulatedCru, AnIndexThatIsNotTheNextIsAnErrorAndNoLoop) {
  inject(FaultKind::size_index_mismatch, 0);
  open_and_start();
  for (int i = 0; i < 4; ++i) ASSERT_EQ(push(), PushStatus::done);
  ASSERT_TRUE(eventually([&] { return !channel_->fill(); }));
  EXPECT_EQ(channel_->fill().error().code, "card.misbehaved");
  EXPECT_EQ(channel_->state(), DmaState::failed);
  EXPECT_EQ(channel_->read(DmaCounter::index_mismatches), 1U);
  EXPECT_EQ(push(), PushStatus::not_started);
  EXPECT_TRUE(channel_->stop());
  EXPECT_EQ(pop_all().size(), 4U);
  start();
  ASSERT_EQ(push(), PushStatus::done);
  wait_ready(1);
}

TEST_F(EmulatedCru, ASuperpageThatTheCardLosesComesBackAtTheStop) {
  inject(FaultKind::dropped_superpage, 0);
  open_and_start();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(push(), PushStatus::done);
  wait_ready(2);
  ASSERT_TRUE(channel_->stop());
  const auto all = pop_all();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_FALSE(all.back().ready);
}

TEST_F(EmulatedCru, WithoutLinksThereIsNothingToStart) {
  ASSERT_TRUE(card_->write(cru::reg("datapath_enable"), 0, 0));
  open({{.source = DataSource::fee}});
  EXPECT_EQ(channel_->start().error().code, "card.no_links");
}

TEST_F(EmulatedCru, AFrameLengthInTheDebugRegisterDoesNotStopTheInternalGenerator) {
  ASSERT_TRUE(card_->write(cru::reg("debug"), 256U << 20));
  open_and_start();
  ASSERT_EQ(push(), PushStatus::done);
  wait_ready(1);
  EXPECT_EQ(card_->read(cru::reg("debug")), 256U << 20) << "the length shares its register";
}

TEST_F(EmulatedCru, LinksThatRunDryAreSeenInTheHealth) {
  links_ = 1;
  open_and_start();
  EXPECT_TRUE(eventually([&] { return !channel_->health().value_or(DmaHealth{}).fifos_healthy; }));
  const auto health = channel_->health();
  ASSERT_TRUE(health);
  EXPECT_TRUE(health->fifos_healthy) << "since the last call";
  EXPECT_TRUE(health->temperature_celsius);
}

TEST_F(EmulatedCru, UserLogicChangesBetweenFixedAndRandomEventSizes) {
  for (const bool random : {true, true, false, true}) {
    ASSERT_TRUE(change_user_logic(*card_, {.event_words = 100, .random_size = random}));
    EXPECT_EQ(read_user_logic(*card_)->random_size, random);
  }
  ASSERT_TRUE(change_user_logic(*card_, {.system_id = 3}));
  EXPECT_TRUE(read_user_logic(*card_)->random_size) << "other settings stay";
}

}  // namespace
}  // namespace rodeo::card
