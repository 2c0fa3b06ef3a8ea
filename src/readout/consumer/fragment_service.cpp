#include "readout/consumer/fragment_service.h"

#include <algorithm>
#include <utility>

#include "readout/run_info.h"

namespace rodeo::readout {
namespace {

using formats::FragmentRefusal;
using formats::FragmentRequest;
using Answer = FragmentBook::Answer;
using ClientNumber = transport::Replier::Client;

// Interval of the looks at waiting requests: their fragments may have become lost, or they may have waited long enough.
constexpr std::uint64_t kCheckNs = 1'000'000;
constexpr std::uint64_t kShareOfClient = 8;

}  // namespace

FragmentService::FragmentService(FragmentServiceSettings settings)
    : settings_(std::move(settings)),
      retention_(settings_.robs, settings_.book),
      waiting_(settings_.most_waiting),
      replier_(std::make_unique<transport::Replier>(settings_.replier)) {
  // A reply has at least one ROB.
  replies_.reserve(settings_.most_sending + settings_.robs.size());
  free_replies_.reserve(replies_.capacity());
  named_in_.resize(settings_.robs.size());
}

FragmentService::~FragmentService() { replier_.reset(); }

FragmentBook::Outcome FragmentService::keep(std::size_t rob, FragmentPtr& fragment, std::uint64_t now_ns) {
  FragmentBook& book = retention_.book(rob);
  const std::uint64_t id = fragment->global_id;
  const FragmentBook::Outcome outcome = book.keep(fragment, now_ns);
  if (outcome != FragmentBook::Outcome::full && waiting_.size() != 0)
    waiting_.for_each_of(id + book.offset(),
                         [&](const WaitingRequest& request) { return may_send(request.client) && answer(request, false); });
  return outcome;
}

bool FragmentService::serve(std::uint64_t now_ns) {
  now_ns_ = now_ns;
  retention_.advance(now_ns);
  requests_.clear();
  dropped_.clear();
  replier_->poll(now_ns, requests_, dropped_);
  for (const auto& one : dropped_) drop(one);
  if (!dropped_.empty())
    counters_.add(ServiceCounter::dropped, std::erase_if(requests_, [&](const Request& request) {
                    return transport::Replier::was_dropped(request, dropped_);
                  }));
  const bool progressed = !requests_.empty() || reply_was_sent_;
  if (std::exchange(reply_was_sent_, false) && !held_back_.empty()) {
    // Answers held-back requests in the order of arrival. Requests of clients with too much unsent data continue to wait.
    std::deque<HeldBack> held = std::exchange(held_back_, {});
    for (HeldBack& one : held) {
      if (may_send(one.request.client)) {
        fetch(one.request, one.arrival_ns);
      } else {
        held_back_.push_back(std::move(one));
      }
    }
  }
  for (Request& request : requests_) handle(request, now_ns);
  was_requested_ = was_requested_ || !requests_.empty();
  requests_.clear();
  if (now_ns >= next_check_ns_) check_waiting(now_ns);
  return progressed;
}

void FragmentService::end() {
  if (std::exchange(ended_, true)) return;
  retention_.end();
  next_check_ns_ = 0;
}

void FragmentService::handle(Request& request, std::uint64_t now_ns) {
  switch (static_cast<FragmentRequest>(request.kind)) {
    case FragmentRequest::describe: return describe(request);
    case FragmentRequest::clear: used_ns_ = now_ns; return clear(request, now_ns);
    case FragmentRequest::holdings: return holdings(request);
    case FragmentRequest::fetch:
      used_ns_ = now_ns;
      if (may_send(request.client)) return fetch(request, now_ns);
      // A waiting request keeps its pages of the client's connection, so a client that never reads answers can send no more.
      counters_.add(ServiceCounter::held_back);
      held_back_.push_back({std::move(request), now_ns});
      return;
  }
  if (formats::is_of_version_1(request.kind))
    return refuse(request, FragmentRefusal::old_version, ServiceCounter::old_version);
  refuse(request, FragmentRefusal::unknown_kind, ServiceCounter::unknown_kind);
}

bool FragmentService::may_send(ClientNumber client) const {
  if (sending_ == 0) return true;
  if (sending_ + retention_.robs().size() > settings_.most_sending) return false;
  const auto found = clients_.find(client);
  return found == clients_.end() || found->second.sending == 0 ||
         found->second.sending + retention_.robs().size() <= settings_.most_sending / kShareOfClient;
}

void FragmentService::fetch(Request& request, std::uint64_t arrival_ns) {
  if (!formats::read_fetch_request(request.message.in_one_piece(scratch_), fetch_request_))
    return refuse(request, FragmentRefusal::unreadable, ServiceCounter::unreadable);
  parsed_request_.client = request.client;
  parsed_request_.number = request.number;
  parsed_request_.id = fetch_request_.id;
  retention_.align(parsed_request_.id);
  parsed_request_.until_ns = arrival_ns + std::uint64_t{fetch_request_.wait_us} * 1000;
  parsed_request_.robs.clear();
  if (fetch_request_.robs.empty()) {
    for (std::uint32_t rob = 0; rob < retention_.robs().size(); ++rob) parsed_request_.robs.push_back(rob);
  }
  ++fetch_;
  for (const SourceId id : fetch_request_.robs) {
    const auto rob = retention_.rob(id);
    if (!rob || std::exchange(named_in_[*rob], fetch_) == fetch_)
      return refuse(request, FragmentRefusal::unknown_rob, ServiceCounter::unknown_rob);
    parsed_request_.robs.push_back(static_cast<std::uint32_t>(*rob));
  }
  if (answer(parsed_request_, now_ns_ >= parsed_request_.until_ns)) return;
  if (waiting_.full()) return refuse(request, FragmentRefusal::busy, ServiceCounter::busy);
  waiting_.add(parsed_request_);
}

// False, without an answer, if a fragment may still come and the answer need not be given `now`.
bool FragmentService::answer(const WaitingRequest& request, bool now) {
  bool data = false;
  std::uint16_t status = 0;
  for (const std::uint32_t rob : request.robs) {
    const Answer answer = retention_.book(rob).find(request.id).answer;
    if (answer == Answer::pending && !now) return false;
    data = data || answer == Answer::kept;
    if (answer == Answer::pending) status |= formats::fetch_status::kPending;
    if (answer == Answer::lost) status |= formats::fetch_status::kLost;
  }
  if (free_replies_.empty()) {
    free_replies_.push_back(replies_.size());
    replies_.push_back(std::make_unique<Sending>());
  }
  const std::uint64_t tag = free_replies_.back();
  free_replies_.pop_back();
  Sending& sending = *replies_[tag];
  sending.client = request.client;
  sending.robs = request.robs.size();
  for (const std::uint32_t rob : request.robs) {
    const FragmentBook::Found found = retention_.book(rob).find(request.id);
    if (found.fragment != nullptr) {
      const std::uint64_t offset = retention_.book(rob).offset();
      sending.reply.add(*found.fragment, settings_.ids.moved((*found.fragment)->l1id, offset), settings_.frame);
      continue;
    }
    const bool pending = found.answer == Answer::pending;
    sending.reply.add_absent(retention_.robs()[rob], settings_.ids.l1id_of(request.id),
                             pending ? formats::kRobPending : formats::kRobLost, settings_.frame);
    counters_.add(pending ? ServiceCounter::pending : ServiceCounter::lost);
  }
  counters_.add(ServiceCounter::fetches);
  counters_.add(ServiceCounter::fetched, sending.reply.fragments());
  sending_ += sending.robs;
  Client& client = clients_[request.client];
  if (client.sending == 0) client.progress_ns = now_ns_;
  client.sending += sending.robs;
  replier_->reply(request.client, request.number, status, sending.reply.parts(list_), this, tag);
  return true;
}

void FragmentService::sent(std::uint64_t tag) noexcept {
  Sending& sending = *replies_[tag];
  sending_ -= sending.robs;
  if (const auto client = clients_.find(sending.client); client != clients_.end()) {
    client->second.sending -= sending.robs;
    client->second.progress_ns = now_ns_;
  }
  sending.reply.clear();
  free_replies_.push_back(tag);
  reply_was_sent_ = true;
}

void FragmentService::clear(const Request& request, std::uint64_t now_ns) {
  if (!formats::read_clear_request(request.message.in_one_piece(scratch_), clear_request_))
    return refuse(request, FragmentRefusal::unreadable, ServiceCounter::unreadable);
  counters_.add(ServiceCounter::clears);
  auto& last = clients_[request.client].clear_sequence;
  if (last && clear_request_.sequence > *last + 1)
    counters_.add(ServiceCounter::clear_gaps, clear_request_.sequence - *last - 1);
  last = last ? std::max(*last, clear_request_.sequence) : clear_request_.sequence;
  if (const auto first = clear_request_.first_id()) retention_.align(*first);
  retention_.clear(clear_request_, now_ns);
  replier_->reply(request.client, request.number, 0, {});
  next_check_ns_ = 0;  // requests for cleared fragments need not wait any longer
}

void FragmentService::describe(const Request& request) {
  if (request.message.bytes() != 0) return refuse(request, FragmentRefusal::unreadable, ServiceCounter::unreadable);
  answer_.clear();
  formats::Numbering numbering = settings_.numbering;
  if (numbering.orbits != 0) numbering.phase = frame_phase();
  formats::append_describe_reply(answer_, {.run_number = settings_.frame.run_number,
                                           .ended = ended_,
                                           .robs = retention_.robs(),
                                           .numbering = numbering,
                                           .first = retention_.first()});
  const std::span<const std::byte> part(answer_);
  replier_->reply(request.client, request.number, 0, {&part, 1});
}

void FragmentService::holdings(const Request& request) {
  const auto asked = formats::read_holdings_request(request.message.in_one_piece(scratch_));
  if (!asked) return refuse(request, FragmentRefusal::unreadable, ServiceCounter::unreadable);
  asked->run_at ? retention_.align(*asked->run_at, true) : retention_.set_alone();
  answer_.clear();
  const std::size_t most = std::min<std::size_t>(asked->most_ranges, formats::kMostHoldingsRanges);
  formats::append_holdings_reply(answer_, retention_.holdings(asked->from, most));
  const std::span<const std::byte> part(answer_);
  replier_->reply(request.client, request.number, 0, {&part, 1});
}

void FragmentService::refuse(const Request& request, FragmentRefusal why, ServiceCounter counter) {
  counters_.add(counter);
  if (why != FragmentRefusal::busy) {
    if (const auto turn = unreadable_log_.turn())
      base::log_warning("{}: a request of {} is refused: {}{}", settings_.replier.name,
                        replier_->client_name(request.client), kServiceInfo[static_cast<std::size_t>(counter)].help,
                        turn.suffix());
  }
  replier_->refuse(request.client, request.number, static_cast<std::uint16_t>(why));
}

void FragmentService::check_waiting(std::uint64_t now_ns) {
  next_check_ns_ = now_ns + kCheckNs;
  waiting_.for_each([&](const WaitingRequest& request) {
    return may_send(request.client) && answer(request, now_ns >= request.until_ns);
  });
  for (auto& [number, client] : clients_) {
    if (client.sending == 0) continue;
    // A large reply may take several looks: each sent page counts as progress.
    if (const std::uint64_t bytes = replier_->sent_bytes(number); std::exchange(client.sent_bytes, bytes) != bytes)
      client.progress_ns = now_ns;
    if (now_ns - client.progress_ns < settings_.patience_ns) continue;
    counters_.add(ServiceCounter::cut_off);
    replier_->cut_off(number, "it does not read its replies");
    break;  // the cut releases replies, and may change the list
  }
  const std::vector<ClientNumber> connected = replier_->clients();
  if (clients_.size() <= 2 * connected.size()) return;
  std::erase_if(clients_, [&](const auto& one) {
    return one.second.sending == 0 && std::ranges::find(connected, one.first) == connected.end();
  });
}

void FragmentService::drop(const transport::Replier::Dropped& dropped) {
  bool waited = waiting_.size() != 0 && waiting_.drop(dropped.client, dropped.number);
  waited = std::erase_if(held_back_,
                         [&](const HeldBack& one) {
                           return one.request.client == dropped.client && one.request.number == dropped.number;
                         }) != 0 ||
           waited;
  if (waited) counters_.add(ServiceCounter::dropped);
}

}  // namespace rodeo::readout
