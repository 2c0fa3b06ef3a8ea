// A client of the service `fragments` for tests: it sends requests, waits for answers, and decodes them.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "formats/fragment_request.h"
#include "formats/rob.h"
#include "transport/requester.h"

namespace rodeo::test {

class FragmentsClient {
 public:
  using Outcome = transport::Requester::Outcome;
  struct Answer {
    Outcome outcome = Outcome::lost;
    std::uint16_t status = 0;
    std::vector<std::byte> bytes = {};
  };

  FragmentsClient(const std::filesystem::path& bus, const std::string& service, const std::string& name = "node")
      : requester_({.name = name, .bus = bus}), service_(requester_.add(service)) {}

  transport::Requester& requester() { return requester_; }
  transport::Requester::Service service() const { return service_; }

  /// Sends a request as soon as there is room, and does not wait for the answer.
  transport::Requester::Request ask(formats::FragmentRequest kind, std::span<const std::byte> request) {
    for (;;) {
      if (const auto asked = requester_.ask(service_, static_cast<std::uint16_t>(kind), request, std::chrono::seconds(60)))
        return *asked;
      poll();
    }
  }

  /// Waits for the answer to an earlier request.
  Answer wait_for(transport::Requester::Request request) {
    for (;;) {
      for (auto& reply : ended_) {
        if (reply.request != request) continue;
        Answer answer{.outcome = reply.outcome, .status = reply.status};
        std::vector<std::byte> scratch;
        const auto bytes = reply.message.in_one_piece(scratch);
        answer.bytes.assign(bytes.begin(), bytes.end());
        std::swap(reply, ended_.back());
        ended_.pop_back();
        return answer;
      }
      poll();
    }
  }

  Answer asked(formats::FragmentRequest kind, std::span<const std::byte> request) { return wait_for(ask(kind, request)); }

  static std::vector<std::byte> fetch_request(std::uint32_t id, std::uint32_t wait_us = 0, std::vector<SourceId> robs = {}) {
    std::vector<std::byte> request;
    formats::append_fetch_request(request, {.id = id, .wait_us = wait_us, .robs = std::move(robs)});
    return request;
  }
  Answer fetch(std::uint32_t id, std::uint32_t wait_us = 0, std::vector<SourceId> robs = {}) {
    return asked(formats::FragmentRequest::fetch, fetch_request(id, wait_us, std::move(robs)));
  }
  void clear(formats::ClearRequest request) {
    request.sequence = ++clears_;
    std::vector<std::byte> bytes;
    formats::append_clear_request(bytes, request);
    const Answer answer = asked(formats::FragmentRequest::clear, bytes);
    EXPECT_EQ(answer.outcome, Outcome::answered);
    EXPECT_TRUE(answer.bytes.empty());
  }
  formats::HoldingsReply holdings(std::uint64_t from = 0, std::uint32_t most = formats::kMostHoldingsRanges) {
    std::vector<std::byte> request;
    formats::append_holdings_request(request, {.from = from, .most_ranges = most});
    const auto reply = formats::read_holdings_reply(asked(formats::FragmentRequest::holdings, request).bytes);
    EXPECT_TRUE(reply) << reply.error().message();
    return reply.value_or(formats::HoldingsReply{});
  }
  formats::DescribeReply describe() {
    const auto reply = formats::read_describe_reply(asked(formats::FragmentRequest::describe, {}).bytes);
    EXPECT_TRUE(reply) << reply.error().message();
    return reply.value_or(formats::DescribeReply{});
  }

  /// The ROBs of an answer, as views of its bytes.
  static std::vector<formats::RobView> robs(const Answer& answer) {
    std::vector<formats::RobView> out;
    EXPECT_EQ(answer.bytes.size() % 4, 0u);
    const auto whole = formats::for_each_rob(formats::WordView(answer.bytes),
                                             [&](const formats::RobView& rob, std::size_t) { out.push_back(rob); });
    EXPECT_TRUE(whole) << whole.error().message();
    return out;
  }

  void poll() {
    const std::size_t before = ended_.size();
    requester_.poll(base::steady_now_ns(), ended_);
    if (ended_.size() == before) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

 private:
  transport::Requester requester_;
  transport::Requester::Service service_;
  std::vector<transport::Requester::Reply> ended_;
  std::uint64_t clears_ = 0;
};

}  // namespace rodeo::test
