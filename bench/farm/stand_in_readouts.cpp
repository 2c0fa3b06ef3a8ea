#include "bench/farm/stand_in_readouts.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace rodeo::bench {
namespace {

using formats::FragmentRequest;

/// Pause between two rounds. A round makes system calls for each readout: without a pause, a process that stands for
/// hundreds would do nothing else. Each readout receives some ten messages a second.
constexpr std::uint64_t kRoundNs = 10'000'000;

/// A digest of 8 bytes at a time; the order of batches does not matter.
std::uint64_t digest_of(std::span<const std::byte> bytes) {
  std::uint64_t hash = 0x9e3779b97f4a7c15U;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    hash = (hash ^ word) * 0xff51afd7ed558ccdU;
    hash ^= hash >> 32;
  }
  for (const std::byte byte : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0xff51afd7ed558ccdU;
  return hash;
}

std::uint64_t ids_in(const formats::ClearRequest& clear) {
  std::uint64_t count = 0;
  for (const auto& range : clear.ranges) count += range.count;
  for (const auto& bitmap : clear.bitmaps) count += static_cast<std::uint64_t>(std::popcount(bitmap.bits));
  return count;
}

}  // namespace

std::string stand_in_readout(std::uint32_t number) { return fmt::format("readout-{}.hlt", number); }

StandInReadouts::StandInReadouts(StandInReadoutsSettings settings, const FarmMeeting& meeting)
    : settings_(std::move(settings)), meeting_(meeting) {
  for (std::uint32_t i = 0; i < settings_.readouts; ++i) {
    services_.push_back(
        std::make_unique<transport::Replier>(transport::ReplierSettings{.name = stand_in_readout(settings_.first + i),
                                                                        .service = "fragments",
                                                                        .bus = settings_.bus,
                                                                        .providers = {"tcp"},
                                                                        .page_bytes = 8192,
                                                                        .pages = 16,
                                                                        .most_clients = 4}));
    meeting_->readouts_here.fetch_add(1, std::memory_order_relaxed);
  }
}

bool StandInReadouts::poll(std::uint64_t now_ns) {
  if (now_ns < polled_ns_ + kRoundNs) return false;
  polled_ns_ = now_ns;
  bool some = false;
  for (std::uint32_t i = 0; i < services_.size(); ++i) {
    requests_.clear();
    services_[i]->poll(now_ns, requests_, dropped_);
    for (const auto& request : requests_) answer(i, request);
    some = some || !requests_.empty();
  }
  requests_.clear();
  dropped_.clear();
  return some;
}

void StandInReadouts::answer(std::uint32_t index, const transport::Replier::Request& request) {
  reply_.clear();
  switch (static_cast<FragmentRequest>(request.kind)) {
    case FragmentRequest::clear: clear(settings_.first + index, request.message.in_one_piece(whole_)); break;
    case FragmentRequest::holdings:
      // Say that the fragments of all events have arrived.
      formats::append_holdings_reply(reply_, {.newest = UINT32_MAX});
      break;
    case FragmentRequest::describe: formats::append_describe_reply(reply_, {.run_number = 1}); break;
    default:
      return services_[index]->refuse(request.client, request.number,
                                      static_cast<std::uint16_t>(formats::FragmentRefusal::unknown_kind));
  }
  const std::span<const std::byte> parts[] = {reply_};
  services_[index]->reply(request.client, request.number, 0, parts);
}

void StandInReadouts::clear(std::uint32_t number, std::span<const std::byte> bytes) {
  if (!formats::read_clear_request(bytes, clear_)) {
    meeting_->failures.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  FarmCounts::Readout& readout = meeting_->readouts[number];
  readout.cleared.fetch_add(ids_in(clear_), std::memory_order_relaxed);
  readout.digest.fetch_add(digest_of(bytes), std::memory_order_relaxed);
  if (number != 0) return;
  clear_.for_each_id([&](std::uint64_t id) {
    if (!meeting_.is_set(FarmMeeting::Bit::assigned, id)) meeting_->cleared_early.fetch_add(1, std::memory_order_relaxed);
    if (meeting_.set(FarmMeeting::Bit::cleared, id)) readout.twice.fetch_add(1, std::memory_order_relaxed);
  });
}

}  // namespace rodeo::bench
