#include "farm/node/event_data.h"

#include <algorithm>

#include "formats/checksum.h"
#include "formats/event_ids.h"
#include "formats/fragment_request.h"
#include "formats/rob_frame.h"
#include "formats/stream_tags.h"
#include "formats/words.h"
#include "rodeo/fragment.h"

namespace rodeo::farm {

using formats::FoundRob;
using Result = EventCollector::Result;
using enum DataCounter;

namespace {

constexpr std::uint32_t kPendingBit = formats::kRobPending & 0xffff0000;
constexpr std::uint32_t kLostBit = formats::kRobLost & 0xffff0000;
constexpr std::uint32_t kGeneric = 0xffff;

}  // namespace

void EventData::begin(const formats::AssignedEvent& assigned, std::size_t robs, std::uint64_t utc_ns) {
  end();
  assigned_ = assigned;
  utc_ns_ = utc_ns;
  parts_.assign(robs, {});
  arrived_robs_ = 0;
  payload_bytes_ = 0;
  status_ = 0;
  trigger_differs_ = false;
  // The first fragment replaces these values of the assignment.
  knows_trigger_ = false;
  l1id_ = formats::payload_id(assigned.id);
  bcid_ = assigned.bcid != formats::kNoBcid ? assigned.bcid : 0;
  trigger_type_ = assigned.trigger_type;
}

void EventData::end() {
  record_.clear();
  view_pieces_.clear();
  view_robs_.clear();
  messages_.clear();
}

std::uint64_t EventData::parse(transport::ReceivedMessage message, std::span<const RobIndex> asked,
                               const EventCollector& collector, const EventContext& context, std::vector<Result>& results,
                               base::CounterBlock<DataCounter>& counters) {
  messages_.push_back(std::move(message));
  const formats::Pieces pieces(messages_.back().pieces());
  const auto number = static_cast<std::uint32_t>(messages_.size() - 1);
  found_.clear();
  if (!formats::walk_robs(pieces, found_)) counters.add(unreadable_replies);
  std::uint64_t kept_bytes = 0;
  std::size_t expected = 0;  // Answers come in the order of the request.
  for (const FoundRob& rob : found_) {
    const auto is = [&](RobIndex index) { return collector.source_id(index) == rob.source_id; };
    auto at = asked.begin() + static_cast<std::ptrdiff_t>(std::min(expected, asked.size()));
    if (at == asked.end() || !is(*at)) at = std::ranges::find_if(asked, is);
    if (at == asked.end() || *at >= parts_.size()) {
      counters.add(unknown_robs);
      continue;
    }
    expected = static_cast<std::size_t>(at - asked.begin()) + 1;
    Part& part = parts_[*at];
    if (part.present || std::ranges::find(results, *at, &Result::rob) != results.end()) {
      counters.add(twice_robs);
      continue;
    }
    const auto refuse = [&](DataCounter why, std::uint32_t status) {
      counters.add(why);
      part.missing_status = static_cast<std::uint8_t>(status);
      results.push_back({*at, Result::What::bad});
    };
    if ((rob.status & kPendingBit) != 0) {
      results.push_back({*at, Result::What::pending});
    } else if ((rob.status & kLostBit) != 0) {
      results.push_back({*at, Result::What::lost});
    } else if (!rob.sound) {
      refuse(bad_robs, fragment_status::kDataCorruption);
    } else if (!formats::may_be(rob.rod.l1id, assigned_.id) || (knows_trigger_ && rob.rod.l1id != l1id_)) {
      refuse(wrong_l1id, fragment_status::kL1IdMismatch);
    } else if (rob.rod.run_number != context.run_number) {
      refuse(wrong_run, fragment_status::kDataCorruption);
    } else if (payload_bytes_ + rob.bytes > context.most_bytes) {
      refuse(too_large, fragment_status::kOverflow);
    } else {
      part = {.present = true, .message = number, .offset = rob.offset, .bytes = rob.bytes, .status = rob.status};
      ++arrived_robs_;
      payload_bytes_ += rob.bytes;
      status_ |= rob.status & kGeneric;
      if (!knows_trigger_) {
        knows_trigger_ = true;
        l1id_ = rob.rod.l1id;
        bcid_ = rob.rod.bcid;
        trigger_type_ = rob.rod.trigger_type;
      } else if (bcid_ != rob.rod.bcid || trigger_type_ != rob.rod.trigger_type) {
        trigger_differs_ = true;
      }
      kept_bytes += rob.bytes;
      results.push_back({*at, Result::What::arrived});
    }
  }
  // Nothing was kept, and other messages wait for the pages, so these go back.
  if (kept_bytes == 0) messages_.pop_back();
  return kept_bytes;
}

WholeEvent EventData::view(const EventContext& context, const EventCollector& collector, std::uint32_t step) {
  view_pieces_.clear();
  view_robs_.clear();
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  for (const RobIndex rob : collector.ordered_robs()) {
    if (rob >= parts_.size() || !parts_[rob].present) continue;
    const Part& part = parts_[rob];
    const std::size_t first = view_pieces_.size();
    // Each ROB has its own pieces, even if the next ROB follows at once.
    std::vector<std::span<const std::byte>> pieces;
    formats::Pieces(messages_[part.message].pieces()).append(part.offset, part.bytes, pieces);
    view_pieces_.insert(view_pieces_.end(), pieces.begin(), pieces.end());
    ranges.emplace_back(first, pieces.size());
    view_robs_.push_back({.source_id = collector.source_id(rob), .status = part.status, .parts = {}});
  }
  for (std::size_t i = 0; i < ranges.size(); ++i)
    view_robs_[i].parts = std::span(view_pieces_).subspan(ranges[i].first, ranges[i].second);
  return {.global_id = assigned_.id,
          .l1id = l1id_,
          .run_number = context.run_number,
          .lumi_block = assigned_.lumi_block,
          .scan_step = assigned_.scan_step,
          .bcid = static_cast<std::uint16_t>(bcid_),
          .trigger_type = static_cast<std::uint8_t>(trigger_type_),
          .step = step,
          .robs = view_robs_};
}

void EventData::make_record(const RecordOptions& options, EventCollector::Slot slot, const EventCollector& collector,
                            const EventContext& context, base::CounterBlock<DataCounter>& counters) {
  if (trigger_differs_) {
    counters.add(trigger_mismatch);
    status_ |= fragment_status::kBcidMismatch;
  }
  // Makes the ROBs that stand for missing fragments.
  stubs_.clear();
  const formats::RobFrame frame{.run_number = context.run_number};
  bool partial = options.partial;
  for (const RobIndex rob : collector.ordered_robs()) {
    if (rob >= parts_.size() || parts_[rob].present) continue;
    partial = true;
    std::uint32_t status = formats::kRobLost | parts_[rob].missing_status;
    if (const RobLoss loss = collector.loss(slot, rob); loss == RobLoss::timed_out || loss == RobLoss::readout_away)
      status |= fragment_status::kTimeout;
    status_ |= status & kGeneric;
    const std::size_t at = stubs_.size();
    formats::append_absent_rob(stubs_, frame, collector.source_id(rob), l1id_, status);
    constexpr std::size_t kRodBcid = formats::kRobHeaderWords + 6;
    formats::store_word(stubs_.data() + at + kRodBcid * formats::kWordBytes, bcid_);
    formats::store_word(stubs_.data() + at + (kRodBcid + 1) * formats::kWordBytes, trigger_type_);
  }
  formats::WholeEventHeader header;
  header.status = status_ | options.status | (partial ? formats::event_status::kPartial : 0);
  header.bc_time_s = static_cast<std::uint32_t>(utc_ns_ / 1'000'000'000);
  header.bc_time_ns = static_cast<std::uint32_t>(utc_ns_ % 1'000'000'000);
  header.global_id = assigned_.id;
  header.run_type = context.run_type;
  header.run_number = context.run_number;
  header.lumi_block = assigned_.lumi_block;
  header.scan_step = assigned_.scan_step;
  header.build_only = assigned_.build_only();
  header.l1id = l1id_;
  header.bcid = bcid_;
  header.trigger_type = trigger_type_;
  header.checksum = context.checksum ? formats::ChecksumType::adler32 : formats::ChecksumType::none;
  std::vector<formats::StreamTag> tags;
  for (const formats::RecordStream& stream : options.streams)
    tags.push_back({.name = stream.name, .type = stream.type, .obeys_lumi_block = stream.obeys_lumi_block});
  header.stream_tags = formats::encode_stream_tags(tags);
  front_.clear();
  formats::append_record_head(front_, {.global_id = assigned_.id,
                                       .streams = {options.streams.begin(), options.streams.end()},
                                       .assigned_again = assigned_.build_only()});
  const std::size_t head_bytes = front_.size();
  const std::size_t rob_bytes = payload_bytes_ + stubs_.size();
  formats::append_whole_event_header(front_, header, rob_bytes);

  view_pieces_.clear();
  for (const RobIndex rob : collector.ordered_robs()) {
    if (rob >= parts_.size() || !parts_[rob].present) continue;
    const Part& part = parts_[rob];
    formats::Pieces(messages_[part.message].pieces()).append(part.offset, part.bytes, view_pieces_);
  }
  record_.clear();
  record_.emplace_back(front_);
  record_.insert(record_.end(), view_pieces_.begin(), view_pieces_.end());
  if (!stubs_.empty()) record_.emplace_back(stubs_);
  event_bytes_ = front_.size() - head_bytes + rob_bytes;
  if (!context.checksum) return;
  std::uint32_t sum = formats::kAdler32Start;
  for (const auto piece : std::span(record_).subspan(1)) sum = formats::adler32(piece, sum);
  formats::store_word(checksum_.data(), sum);
  record_.emplace_back(checksum_);
  event_bytes_ += checksum_.size();
}

}  // namespace rodeo::farm
