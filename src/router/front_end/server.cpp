#include "router/front_end/server.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/named_counters.h"
#include "base/sentence.h"

namespace rodeo::router {
namespace {

constexpr std::size_t kMostOwners = 64;
constexpr std::uint64_t kServeNs = 5'000'000;  // limit of the time for one owner before the next one's turn
constexpr std::size_t kMessageBytes = 32;      // bytes that each message counts beyond its own, in the rate of its link
constexpr std::uint64_t kRoomPatienceNs = 5'000'000'000;
constexpr std::uint64_t kShowNs = 100'000'000;
constexpr std::chrono::milliseconds kIdle{1};
constexpr std::chrono::milliseconds kNoOwnerIdle{10};  // wait of the thread while no owner is connected
constexpr double kBurst = 64 << 10;

}  // namespace

FrontEndServer::FrontEndServer(const transport::PublisherSettings& settings, const FrontEndSettings& limits,
                               std::vector<std::unique_ptr<FrontEndDevice>> devices)
    : limits_(limits),
      devices_(std::move(devices)),
      listener_({.name = settings.name, .address = settings.address, .secret = settings.secret}) {
  std::vector<Fid> fids;
  for (const auto& device : devices_) {
    for (std::size_t i = 0; i < device->links().size(); ++i) {
      fids.push_back(device->links()[i]);
      links_.push_back({device.get(), i, RateLimit(static_cast<double>(limits_.bytes_per_second), kBurst)});
    }
  }
  claims_.emplace(fids);
  listener_.advertise(settings.bus, {.links = std::move(fids)});
}

FrontEndServer::~FrontEndServer() { stop(); }

void FrontEndServer::start() {
  thread_ = std::thread([this] { run(); });
}

void FrontEndServer::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  for (const auto& device : devices_) device->hurry();
  if (thread_.joinable()) thread_.join();
}

void FrontEndServer::run() {
  base::set_thread_name("rodeo-frontends");
  cpu_.attach();
  std::uint64_t shown_ns = 0;
  while (!stopping_.load(std::memory_order_relaxed)) {
    const std::uint64_t now = base::steady_now_ns();
    const auto refused = listener_.poll(now, [&](transport::ControlSocket& socket, formats::ControlMessage message) {
      return on_claim(socket, std::move(message));
    });
    counters_.add(FrontEndCounter::refused_senders, refused.peers);
    bool any = false;
    for (const auto& owner : owners_) any = serve(*owner) || any;
    const bool gone = std::erase_if(owners_, [](const auto& owner) { return owner->state == Owner::State::gone; }) > 0;
    if (gone || now - shown_ns >= kShowNs) {
      shown_ns = now;
      publish_status();
    }
    if (!any) std::this_thread::sleep_for(owners_.empty() ? kNoOwnerIdle : kIdle);
  }
  listener_.withdraw();
  for (const auto& owner : owners_) disconnect(*owner, {"transport.closed", "the router ends"});
  owners_.clear();
  for (const auto& device : devices_) counters_.add(FrontEndCounter::packet_bytes_lost, device->drain());
  publish_status();
  cpu_.detach();
}

Result<void> FrontEndServer::on_claim(transport::ControlSocket& socket, formats::ControlMessage message) {
  auto* const claim = std::get_if<formats::ControlClaim>(&message);
  if (claim == nullptr)
    return std::unexpected(Error{"transport.protocol", "this port serves front-ends: claim links first"});
  if (owners_.size() >= kMostOwners)
    return std::unexpected(
        Error{"transport.too_many", fmt::format("{} have links here, and no more are accepted", kMostOwners)});
  const std::string peer = socket.peer();
  auto links = RODEO_TRY(claims_->claim(next_owner_, fmt::format("{} ({})", claim->name, peer), claim->links));
  auto owner = std::make_unique<Owner>();
  owner->socket = std::exchange(socket, {});
  owner->name = std::move(claim->name);
  owner->peer = peer;
  owner->number = next_owner_++;
  owner->links = std::move(links);
  owner->socket.say(formats::ControlClaimed{});
  base::log_info("{} at {} sends to {}", owner->name, peer, base::counted(owner->links.size(), "link"));
  owners_.push_back(std::move(owner));
  return {};
}

/// True if at least one message was handled.
bool FrontEndServer::serve(Owner& owner) {
  const std::uint64_t begin_ns = base::steady_now_ns();
  std::uint64_t now_ns = begin_ns;
  owner.socket.flush();
  bool any = false;
  // An owner that does not read its answers is not served.
  while (owner.state != Owner::State::gone && owner.socket.all_sent() && now_ns - begin_ns < kServeNs) {
    if (owner.state == Owner::State::idle && !read_message(owner)) break;
    if (!send(owner, now_ns)) break;
    any = true;
    now_ns = base::steady_now_ns();
  }
  // If an owner disconnects, its waiting message is lost, and its links become free at once.
  const bool waits = owner.state != Owner::State::idle || !owner.socket.all_sent();
  if (waits && owner.state != Owner::State::gone && owner.socket.peer_is_gone()) disconnect(owner, {"transport.closed", ""});
  return any;
}

/// Reads the next message. False: there is none.
bool FrontEndServer::read_message(Owner& owner) {
  auto received = owner.socket.next();
  if (!received) {
    disconnect(owner, received.error());
    return false;
  }
  if (!*received) return false;
  auto* const message = std::get_if<formats::ControlSend>(&**received);
  if (message == nullptr || message->link >= owner.links.size()) {
    const Error error{"transport.protocol", message == nullptr ? "it sent a message that is not for a front-end"
                                                               : "it sent to a link that it has not claimed"};
    owner.socket.say(formats::ControlRefuse{error.code, error.what});
    disconnect(owner, error);
    return false;
  }
  owner.message = std::move(*message);
  owner.state = Owner::State::has_message;
  return true;
}

/// Passes the message to its device. False: the message waits.
bool FrontEndServer::send(Owner& owner, std::uint64_t now_ns) {
  const formats::ControlSend& message = owner.message;
  Link& link = links_[owner.links[message.link]];
  if (owner.state != Owner::State::waits_for_room) {
    if (!link.rate.try_acquire(static_cast<double>(message.message.size() + kMessageBytes), now_ns)) {
      if (owner.state != Owner::State::waits_for_rate) counters_.add(FrontEndCounter::rate_waits);
      owner.state = Owner::State::waits_for_rate;
      return false;
    }
    owner.state = Owner::State::waits_for_room;
    owner.room_ns = now_ns;
  }
  auto sent = link.device->send(link.number, message.message);
  formats::ControlAnswer reply{.number = message.number};
  if (!sent) {
    reply.code = sent.error().code;
    reply.what = sent.error().where.empty() ? sent.error().what : sent.error().where + ": " + sent.error().what;
  } else if (*sent) {
    reply.answer = **std::move(sent);
  } else {
    if (now_ns - owner.room_ns < kRoomPatienceNs) return false;
    reply.code = "router.front_end_full";
    reply.what = "the card has had no room for the message for 5 s";
  }
  send_answer(owner, std::move(reply));
  return true;
}

void FrontEndServer::send_answer(Owner& owner, formats::ControlAnswer reply) {
  if (reply.code.empty()) {
    counters_.add(FrontEndCounter::messages_sent);
    counters_.add(FrontEndCounter::message_bytes_sent, owner.message.message.size());
    ++owner.messages;
    owner.bytes += owner.message.message.size();
  } else {
    counters_.add(FrontEndCounter::messages_failed);
  }
  owner.socket.say(reply);
  owner.state = Owner::State::idle;
}

void FrontEndServer::disconnect(Owner& owner, const Error& why) {
  const bool closed = why.code == "transport.closed";
  if (closed) {
    base::log_info("{} at {} has ended its connection", owner.name, owner.peer);
  } else {
    base::log_warning("{} at {} is turned away: {}", owner.name, owner.peer, base::in_a_line(why));
    counters_.add(FrontEndCounter::refused_senders);
  }
  // The owner sent this message, and no card has taken it.
  if (owner.state != Owner::State::idle) counters_.add(FrontEndCounter::messages_failed);
  for (auto received = owner.socket.next(); closed && received && *received; received = owner.socket.next())
    counters_.add(FrontEndCounter::messages_failed);
  claims_->release(owner.number);
  owner.state = Owner::State::gone;
}

void FrontEndServer::publish_status() {
  std::vector<FrontEndStatus::Owner> owners;
  for (const auto& owner : owners_)
    owners.push_back({.name = owner->name,
                      .peer = owner->peer,
                      .links = owner->links.size(),
                      .messages = owner->messages,
                      .bytes = owner->bytes});
  const std::scoped_lock lock(shown_lock_);
  shown_ = std::move(owners);
}

FrontEndStatus FrontEndServer::status() const {
  FrontEndStatus status{.links = links_.size(),
                        .counters = base::named_counters(counters_, kFrontEndCounters, [](FrontEndCounter) { return true; }),
                        .cpu_seconds = cpu_.seconds()};
  const std::scoped_lock lock(shown_lock_);
  status.owners = shown_;
  return status;
}

}  // namespace rodeo::router
