#include "farm/recorder/recorder_server.h"

#include <algorithm>
#include <span>

#include "base/clock.h"
#include "base/named_counters.h"
#include "base/need.h"
#include "transport/bus.h"
#include "transport/secret.h"

namespace rodeo::farm {

using formats::RecordStatus;

namespace {

constexpr std::uint64_t kShowNs = 50'000'000;
// Time after the last file is closed, in which answers go out and new requests are refused.
constexpr std::uint64_t kFarewellNs = 200'000'000;

transport::ReplierSettings replier_settings(const RecorderSettings& settings) {
  return {
      .name = settings.name,
      .service = "events",
      .bus = settings.network.bus.empty() ? transport::default_bus() : settings.network.bus,
      .address = settings.network.address,
      .providers = settings.network.providers,
      .secret = need(transport::read_secret(settings.network.secret_file)),
      .page_bytes = settings.network.page_bytes,
      .pages = settings.network.pages,
      // A message may have any size: nodes limit events (farm.node.max_event_size), and a recorder accepts what they build.
      .most_clients = settings.most_clients,
      .most_request_bytes = 0xffff'ffff};
}

}  // namespace

std::uint64_t RecorderStatus::operator[](std::string_view counter) const { return base::counter_value(counters, counter); }

RecorderServer::RecorderServer(const RecorderSettings& settings)
    : settings_(settings),
      replier_(std::make_unique<transport::Replier>(replier_settings(settings))),
      thread_([this] { run(); }) {}

RecorderServer::~RecorderServer() {
  leaving_.store(true, std::memory_order_release);
  thread_.join();
}

void RecorderServer::start(std::uint32_t run_number) {
  std::vector<std::string> said;
  auto recording = std::make_unique<RunRecording>(settings_.files, settings_.name, run_number,
                                                  [&](std::string text) { said.push_back(std::move(text)); });
  const std::lock_guard lock(mutex_);
  next_recording_ = std::move(recording);
  messages_.insert(messages_.end(), said.begin(), said.end());
}

void RecorderServer::end() { ending_.store(true, std::memory_order_release); }

RecorderStatus RecorderServer::status() const {
  const std::lock_guard lock(mutex_);
  return shown_;
}

std::vector<std::string> RecorderServer::take_messages() {
  const std::lock_guard lock(mutex_);
  return std::exchange(messages_, {});
}

// False: one of the asked events is under way, and the request waits.
bool RecorderServer::answer_have(const Request& request) {
  const auto ids = formats::decode_have(request.message.in_one_piece(scratch_));
  if (!ids || recording_ == nullptr) {
    replier_->refuse(request.client, request.number,
                     static_cast<std::uint16_t>(ids ? RecordStatus::not_ready : RecordStatus::malformed));
    return true;
  }
  // An event on its way to the disk is neither recorded nor missing.
  if (std::ranges::any_of(*ids, [&](std::uint64_t id) { return recording_->is_under_way(id); })) return false;
  formats::HaveAnswer have;
  for (const std::uint64_t id : *ids) {
    const auto* const stream = recording_->stream_of(id);
    const auto known = stream == nullptr ? have.streams.end() : std::ranges::find(have.streams, *stream);
    const auto place = static_cast<std::size_t>(known - have.streams.begin());
    if (stream != nullptr && known == have.streams.end()) have.streams.push_back(*stream);
    if (stream == nullptr && request.kind == formats::event_request::kTakeOver) recording_->take_over(id);
    have.of.push_back(stream == nullptr ? 0 : static_cast<std::uint8_t>(place + 1));
  }
  std::vector<std::byte> answer;
  formats::append_have_answer(answer, have);
  const std::span<const std::byte> part(answer);
  replier_->reply(request.client, request.number, 0, {&part, 1});
  return true;
}

// False: the disk is busy, and the request waits.
bool RecorderServer::handle(Request& request, std::uint64_t now_ns) {
  if (request.kind == formats::event_request::kHave || request.kind == formats::event_request::kTakeOver)
    return answer_have(request);
  const bool known = request.kind == formats::event_request::kRecord;
  if (!known || recording_ == nullptr) {
    replier_->refuse(request.client, request.number,
                     static_cast<std::uint16_t>(known ? RecordStatus::not_ready : RecordStatus::unknown_request));
    return true;
  }
  return recording_->offer({.client = request.client, .number = request.number}, request.message.pieces(),
                           request.message.bytes(), now_ns);
}

void RecorderServer::run() {
  cpu_.attach();
  base::set_thread_name("recorder");
  base::Backoff backoff;
  std::uint64_t farewell_ns = 0;
  while (!leaving_.load(std::memory_order_acquire)) {
    const std::uint64_t now_ns = base::steady_now_ns();
    requests_.clear();
    dropped_.clear();
    replier_->poll(now_ns, requests_, dropped_);
    bool busy = !requests_.empty() || !waiting_.empty();
    for (Request& request : requests_) waiting_.push_back(std::move(request));
    // Events of dropped requests need no place in a file. Events that were accepted before are recorded all the same.
    for (const auto& gone : dropped_)
      std::erase_if(waiting_, [&](const Request& one) { return one.client == gone.client && one.number == gone.number; });
    while (!waiting_.empty() && handle(waiting_.front(), now_ns)) waiting_.pop_front();
    if (recording_ != nullptr) {
      if (const auto delay = delay_ns_.load(std::memory_order_relaxed); delay != delay_set_ns_) {
        delay_set_ns_ = delay;
        recording_->slow_down(std::chrono::nanoseconds(delay));
      }
      answers_.clear();
      recording_->poll(now_ns, answers_);
      for (const RunRecording::Answer& answer : answers_) {
        const auto status = static_cast<std::uint16_t>(answer.status);
        if (status >= formats::kFirstRefusal) {
          replier_->refuse(answer.ticket.client, answer.ticket.number, status);
        } else {
          replier_->reply(answer.ticket.client, answer.ticket.number, status, {});
        }
      }
      busy = busy || !answers_.empty();
      if (ending_.load(std::memory_order_acquire)) recording_->end();
    }
    const bool over = ending_.load(std::memory_order_acquire) && (recording_ == nullptr || recording_->ended());
    if (over && farewell_ns == 0) farewell_ns = now_ns + kFarewellNs;
    show(now_ns, over);
    if (farewell_ns != 0 && (recording_ == nullptr || now_ns >= farewell_ns)) break;
    if (busy) {
      backoff.reset();
    } else {
      backoff.idle();
    }
  }
  ended_.store(true, std::memory_order_release);
  waiting_.clear();
  requests_.clear();
  // A service that no longer answers must leave the bus.
  replier_.reset();
  cpu_.detach();
}

void RecorderServer::show(std::uint64_t now_ns, bool last) {
  if (!last && now_ns - shown_ns_ < kShowNs) return;
  shown_ns_ = now_ns;
  RecorderStatus status;
  status.clients = replier_->clients().size();
  status.requests_waiting = waiting_.size();
  status.cpu_seconds = cpu_.seconds();
  std::vector<std::string> said;
  if (recording_ != nullptr) {
    const auto closed = recording_->take_closed();
    files_.insert(files_.end(), closed.begin(), closed.end());
    said = recording_->take_messages();
    status.run_number = recording_->run_number();
    status.counters = base::named_counters(recording_->counters(), kRecorderCounters, [](RecorderCounter) { return true; });
    status.open_files = recording_->open_files();
    status.events_waiting = recording_->events_waiting();
    status.ids = recording_->ids();
    status.trouble = recording_->trouble();
    status.files = files_;
  }
  for (const NamedCounter& counter : replier_->counters())
    status.counters.push_back({"network_" + counter.name, counter.value});
  const std::lock_guard lock(mutex_);
  if (next_recording_ != nullptr) recording_ = std::move(next_recording_);
  shown_ = std::move(status);
  messages_.insert(messages_.end(), said.begin(), said.end());
}

}  // namespace rodeo::farm
