// Links without a subscriber are left out after the data of their last subscriber are read.
#include "router/wanted_links.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace rodeo::router {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kGrace = 5000 * kMs;

/// Two links, and the messages that their stream gets.
struct Links {
  std::set<LinkIndex> now;  // the links that have subscribers
  std::string told;
  WantedLinks links{2, kGrace};

  auto wanted() {
    return [this](LinkIndex link) { return now.contains(link); };
  }
  auto tell() {
    return [this](LinkIndex link, bool wanted) { told += std::to_string(link) + (wanted ? "+" : "-"); };
  }
  std::string change(std::set<LinkIndex> to, std::uint64_t at_ns = 0) {
    now = std::move(to);
    told.clear();
    links.on_change(at_ns, wanted(), tell());
    return told;
  }
  std::string polled(bool empty, std::uint64_t at_ns = 0) {
    told.clear();
    links.on_poll(empty, at_ns, wanted(), tell());
    return told;
  }
};

TEST(WantedLinks, AtTheBeginningWhatNobodyWantsIsLeftOutAtOnce) {
  Links links;
  EXPECT_EQ(links.change({1}), "0-");
  EXPECT_EQ(links.change({0, 1}), "0+");
}

TEST(WantedLinks, WhatASubscriberLeftBehindIsReadBeforeItsLinksAreLeftOut) {
  Links links;
  links.change({0, 1});
  EXPECT_EQ(links.change({}, 5), "");
  EXPECT_EQ(links.polled(true, 400 * kMs), "");
  EXPECT_EQ(links.polled(false, 450 * kMs), "") << "data that were in the card come later";
  EXPECT_EQ(links.polled(true, 950 * kMs), "");
  EXPECT_EQ(links.polled(true, 951 * kMs), "0-1-");
  EXPECT_EQ(links.polled(true, 960 * kMs), "");
}

TEST(WantedLinks, AStreamThatNeverIsEmptyIsReadOnForNoLongerThanGrace) {
  Links links;
  links.change({0});
  links.change({}, 5);
  EXPECT_EQ(links.polled(false, 4 * kGrace / 5), "");
  EXPECT_EQ(links.polled(false, 5 + kGrace), "");
  EXPECT_EQ(links.polled(false, 6 + kGrace), "0-");
}

TEST(WantedLinks, WhatIsWantedAgainMeanwhileWasNeverLeftOut) {
  Links links;
  links.change({0});
  links.change({});
  EXPECT_EQ(links.change({0}), "");
  EXPECT_EQ(links.polled(true, 600 * kMs), "");
  links.change({}, 700 * kMs);
  EXPECT_EQ(links.polled(true, 1201 * kMs), "0-");
  EXPECT_EQ(links.change({0, 1}), "0+1+");
}

}  // namespace
}  // namespace rodeo::router
