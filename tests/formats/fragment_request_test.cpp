// Requests of the service `fragments`: encoding and decoding by the bytes of the specification, and refusals.
#include "formats/fragment_request.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace rodeo::formats {
namespace {

std::vector<std::byte> bytes(std::initializer_list<unsigned> values) {
  std::vector<std::byte> out;
  for (const unsigned value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}

template <typename T, typename Append>
std::vector<std::byte> written(Append&& append, const T& message) {
  std::vector<std::byte> out;
  append(out, message);
  return out;
}

TEST(FragmentRequest, FetchIsWhatTheSpecificationShows) {
  const FetchRequest request{.id = 0x1'0200'0107, .wait_us = 20'000, .robs = {{0x00610001}, {0x00610002}}};
  const auto raw = written(append_fetch_request, request);
  EXPECT_EQ(raw,
            bytes({0x07, 0x01, 0x00, 0x02, 1, 0, 0, 0, 0x20, 0x4e, 0, 0, 2, 0, 0, 0, 0x01, 0, 0x61, 0, 0x02, 0, 0x61, 0}));
  FetchRequest read;
  read.robs = {{1}, {2}, {3}};  // the decoder reuses the old list
  ASSERT_TRUE(read_fetch_request(raw, read));
  EXPECT_EQ(read, request);
}

TEST(FragmentRequest, ClearIsWhatTheSpecificationShows) {
  const ClearRequest request{.sequence = 5, .ranges = {{0x00ffffff, 3}}, .bitmaps = {{0x1'0200'0010, 0x8000000000000005}}};
  const auto raw = written(append_clear_request, request);
  EXPECT_EQ(raw, bytes({5, 0, 0, 0, 0, 0, 0,    0, 1, 0, 0, 0, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0, 0, 0,
                        0, 0, 3, 0, 0, 0, 0x10, 0, 0, 2, 1, 0, 0, 0, 5, 0, 0,    0,    0,    0, 0, 0x80}));
  ClearRequest read;
  ASSERT_TRUE(read_clear_request(raw, read));
  EXPECT_EQ(read, request);
  std::vector<std::uint64_t> ids;
  read.for_each_id([&](std::uint64_t id) { ids.push_back(id); });
  EXPECT_EQ(ids,
            (std::vector<std::uint64_t>{0x00ffffff, 0x01000000, 0x01000001, 0x1'0200'0010, 0x1'0200'0012, 0x1'0200'004f}));
}

TEST(FragmentRequest, AnswersAreReadAsTheyWereWritten) {
  const DescribeReply description{.run_number = 77, .ended = true, .robs = {{0x610001}, {0x620000}}};
  EXPECT_EQ(read_describe_reply(written(append_describe_reply, description)), description);
  const DescribeReply frames{.run_number = 77, .numbering = {.orbits = 256, .phase = 255}, .first = 1ULL << 40};
  EXPECT_EQ(read_describe_reply(written(append_describe_reply, frames)), frames);
  const HoldingsRequest asked{.from = 1ULL << 40, .run_at = 1ULL << 41, .most_ranges = 7};
  EXPECT_EQ(read_holdings_request(written(append_holdings_request, asked)), asked);
  const HoldingsReply held{.more = true, .newest = 1ULL << 34, .ranges = {{3, 4}, {8, 1}, {1ULL << 33, 5}}};
  EXPECT_EQ(read_holdings_reply(written(append_holdings_reply, held)), held);
  EXPECT_EQ(read_holdings_reply(written(append_holdings_reply, HoldingsReply{})), HoldingsReply{});
}

TEST(FragmentRequest, AReadoutOfVersion2CountsEventsFromTheFirst) {
  const auto raw = bytes({2, 0, 1, 0, 77, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0});
  EXPECT_EQ(read_describe_reply(raw), (DescribeReply{.run_number = 77, .ended = true, .robs = {{5}}, .first = 0}));
  EXPECT_FALSE(read_describe_reply(bytes({2, 0, 3, 0, 77, 0, 0, 0, 1, 0, 0, 0, 5, 0, 0, 0}))) << "a flag of version 3";
  EXPECT_FALSE(
      read_describe_reply(bytes({4, 0, 0, 0, 77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})));
}

TEST(FragmentRequest, AnImpossibleNumberingIsRefused) {
  auto raw = written(append_describe_reply, DescribeReply{.numbering = {.orbits = 8, .phase = 7}, .first = 3});
  ASSERT_TRUE(read_describe_reply(raw));
  auto changed = raw;
  changed[16] = std::byte{8};
  EXPECT_FALSE(read_describe_reply(changed)) << "a phase as long as the frame";
  changed = raw;
  changed[2] = std::byte{4};
  EXPECT_FALSE(read_describe_reply(changed)) << "an unknown phase";
  changed[2] = std::byte{2};
  EXPECT_FALSE(read_describe_reply(changed)) << "an unknown first id";
}

TEST(FragmentRequest, NumberingsFitWhereEqualIdsAreOfTheSameData) {
  const Numbering events{}, beats{.orbits = 1}, eight{.orbits = 8}, from_3{.orbits = 8, .phase = 3},
      from_4{.orbits = 8, .phase = 4};
  EXPECT_TRUE(events.fits(events));
  EXPECT_FALSE(events.fits(beats));
  EXPECT_FALSE(beats.fits(eight));
  EXPECT_TRUE(eight.fits(from_3)) << "its phase is not yet known";
  EXPECT_FALSE(from_3.fits(from_4));
}

TEST(FragmentRequest, WhatIsCutOrTooLongIsRefusedAtEveryLength) {
  ClearRequest clear;
  FetchRequest fetch;
  const auto check = [](std::vector<std::byte> raw, auto&& read) {
    for (std::size_t n = 0; n < raw.size(); ++n) EXPECT_FALSE(read(std::span(raw).first(n))) << n;
    EXPECT_TRUE(read(std::span(raw)));
    raw.push_back({});
    EXPECT_FALSE(read(std::span(raw)));
  };
  check(written(append_fetch_request, FetchRequest{.robs = {{1}, {2}}}),
        [&](auto raw) { return bool(read_fetch_request(raw, fetch)); });
  check(written(append_clear_request, ClearRequest{.ranges = {{1, 2}}, .bitmaps = {{3, 4}}}),
        [&](auto raw) { return bool(read_clear_request(raw, clear)); });
  check(written(append_describe_reply, DescribeReply{.robs = {{1}}}),
        [](auto raw) { return bool(read_describe_reply(raw)); });
  check(written(append_holdings_request, HoldingsRequest{}), [](auto raw) { return bool(read_holdings_request(raw)); });
  check(written(append_holdings_reply, HoldingsReply{.newest = 1, .ranges = {{1, 1}}}),
        [](auto raw) { return bool(read_holdings_reply(raw)); });
}

TEST(FragmentRequest, NumbersBeyondTheirBoundsAreRefused) {
  ClearRequest clear;
  FetchRequest fetch;
  const std::uint32_t most = static_cast<std::uint32_t>(kMostClearIds);
  EXPECT_TRUE(read_clear_request(written(append_clear_request, ClearRequest{.ranges = {{5, most}}}), clear));
  EXPECT_FALSE(read_clear_request(written(append_clear_request, ClearRequest{.ranges = {{5, most}, {0, 1}}}), clear));
  EXPECT_FALSE(read_clear_request(written(append_clear_request, ClearRequest{.ranges = {{5, ~0U}, {0, ~0U}}}), clear));
  ClearRequest bitmaps{.ranges = {}, .bitmaps = {most / 64, {5, ~std::uint64_t{0}}}};
  EXPECT_TRUE(read_clear_request(written(append_clear_request, bitmaps), clear));
  bitmaps.ranges.push_back({0, 1});
  EXPECT_FALSE(read_clear_request(written(append_clear_request, bitmaps), clear)) << "ids of both ranges and bitmaps count";
  EXPECT_FALSE(read_fetch_request(bytes({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 0, 0}), fetch)) << "waits too long";
  EXPECT_FALSE(read_fetch_request(bytes({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff}), fetch))
      << "of too many ROBs";
  EXPECT_FALSE(read_holdings_request(std::vector<std::byte>(24))) << "no room for an answer";
  EXPECT_FALSE(read_clear_request(written(append_clear_request, ClearRequest{.ranges = {{~0ULL - 1, 3}}}), clear))
      << "ids wrap";
}

TEST(FragmentRequest, RangesOfHoldingsAreApartAndInOrder) {
  const auto read = [](std::vector<GlobalIdRange> ranges) {
    return bool(
        read_holdings_reply(written(append_holdings_reply, HoldingsReply{.newest = 9, .ranges = std::move(ranges)})));
  };
  EXPECT_TRUE(read({{0, 1}, {2, 1}}));
  EXPECT_FALSE(read({{0, 2}, {2, 1}})) << "these are one range";
  EXPECT_FALSE(read({{5, 1}, {2, 1}}));
  EXPECT_FALSE(read({{5, 0}}));
  EXPECT_FALSE(read({{~0ULL, 2}})) << "ids wrap";
  EXPECT_TRUE(read({{9, 1}}));
  EXPECT_FALSE(read({{9, 2}})) << "after the newest";
  const auto most = static_cast<std::uint32_t>(kMostHoldingsIds);
  const auto many = [](std::vector<GlobalIdRange> ranges) {
    return bool(
        read_holdings_reply(written(append_holdings_reply, HoldingsReply{.newest = ~0ULL, .ranges = std::move(ranges)})));
  };
  EXPECT_TRUE(many({{1, most}}));
  EXPECT_FALSE(many({{1, most - 1}, {1ULL << 40, 2}}));
  EXPECT_FALSE(many({{1, ~0U}}));
}

}  // namespace
}  // namespace rodeo::formats
