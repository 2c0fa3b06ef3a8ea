#include "trigger/server.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "base/fd_socket.h"
#include "base/log.h"
#include "base/need.h"
#include "base/sentence.h"
#include "base/thread.h"

namespace rodeo::trigger {
namespace {

using namespace protocol;
using namespace std::chrono_literals;

constexpr auto kBatch = 500us;  // triggers of this interval are sent together
constexpr auto kIdle = 20ms;    // interval while no follower is ready
constexpr auto kHeartbeat = 500ms;
constexpr std::chrono::milliseconds kMostForHello{5000};
constexpr auto kAcceptPause = 100ms;
constexpr std::size_t kMostPeers = 256;
constexpr std::size_t kMostUnsent = 256 << 10;  // limit for one follower; its further triggers wait in the ledger
constexpr std::uint64_t kMostAhead = 1 << 20;   // limit of the triggers that count as granted
constexpr std::uint64_t kMostPerTurn = 1 << 16;

}  // namespace

TriggerServer::TriggerServer(TriggerServerSettings settings, TriggerAuthority& authority)
    : settings_(std::move(settings)),
      authority_(authority),
      provable_(settings_.seed),
      address_(need(TriggerAddress::parse(settings_.address))),
      secret_(need(address_.secret(settings_.secret_file))),
      listener_(need(address_.listen())) {
  ranges_.reserve(kMostRanges);
  thread_ = std::jthread([this] { run(); });
}

TriggerServer::~TriggerServer() {
  stop_ = true;
  wake_.wake();
  thread_.join();
  for (Peer& peer : peers_) {
    if (!peer.name.empty()) authority_.leave(peer.follower);
  }
}

void TriggerServer::run() {
  base::set_thread_name("trigger server");
  std::vector<pollfd> polled;
  while (!stop_.load(std::memory_order_relaxed)) {
    // Without free descriptors, new connections wait and triggers continue. poll() ignores a descriptor of -1.
    polled.assign({{wake_.get(), POLLIN, 0}, {Clock::now() < accept_from_ ? -1 : listener_.socket(), POLLIN, 0}});
    bool ready = false;
    for (const Peer& peer : peers_) {
      const bool unsent = peer.connection.unsent_bytes() > 0;
      polled.push_back({peer.connection.fd(), static_cast<short>(unsent ? POLLIN | POLLOUT : POLLIN), 0});
      ready = ready || peer.ready > 0;
    }
    const auto wait = std::chrono::duration_cast<std::chrono::nanoseconds>(ready ? kBatch : kIdle);
    const timespec patience{0, static_cast<long>(wait.count())};
    (void)::ppoll(polled.data(), polled.size(), &patience, nullptr);
    auto poll = polled.begin() + 2;
    // The server reads all peers before it answers any, because a peer that left makes room for a new one with the same
    // name.
    for (Peer& peer : peers_) {
      if ((poll++)->revents != 0) listen_to(peer);
    }
    if (polled[1].revents != 0) accept_peers();
    authority_.advance(base::steady_now_ns());
    for (Peer& peer : peers_) {
      if (peer.gone) continue;
      if (!peer.connection.flush() || (!peer.name.empty() && !send_triggers(peer))) {
        drop(peer, "it is gone");
        continue;
      }
      // A follower may be stopped for `timeout`; a connection without a HELLO has less time.
      const auto limit = peer.name.empty() ? std::min(settings_.timeout, kMostForHello) : settings_.timeout;
      if (Clock::now() - peer.heard > limit) drop(peer, fmt::format("nothing has arrived from it for {} ms", limit.count()));
    }
    std::erase_if(peers_, [](const Peer& peer) { return peer.gone; });
  }
}

void TriggerServer::accept_peers() {
  while (peers_.size() < kMostPeers) {
    base::UniqueFd socket = accept_connection(listener_);
    if (!socket && base::out_of_descriptors(errno)) accept_from_ = Clock::now() + kAcceptPause;
    if (!socket) return;
    std::string where = peer_of(socket.get());
    peers_.push_back({.connection = TriggerConnection(std::move(socket)), .where = std::move(where), .heard = Clock::now()});
  }
  // Refuses a follower above the limit at once.
  if (base::UniqueFd socket = accept_connection(listener_)) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    TriggerConnection(std::move(socket)).send(Refused{.reason = Reason::too_many, .why = "there are too many followers"});
  }
}

void TriggerServer::drop(Peer& peer, std::string_view why) {
  peer.gone = true;
  if (peer.name.empty()) return;
  dropped_.fetch_add(1, std::memory_order_relaxed);
  base::log_error("trigger follower {} ({}) is dropped: {}", peer.name, peer.where, why);
  authority_.leave(peer.follower);
}

void TriggerServer::listen_to(Peer& peer) {
  if (peer.gone) return;
  const bool here = peer.connection.receive();
  for (;;) {
    auto message = peer.connection.next();
    if (!message) return complain(peer, message.error());
    if (!*message) break;
    if (!on_message(peer, **message)) return;
    peer.heard = Clock::now();
  }
  if (here) return;
  if (peer.ready > 0 || peer.name.empty()) return drop(peer, "the connection has ended");
  // The follower had no ready functions.
  peer.gone = true;
  base::log_info("trigger follower {} ({}) has left", peer.name, peer.where);
  authority_.leave(peer.follower);
}

bool TriggerServer::on_message(Peer& peer, const Message& message) {
  if (const auto* const hello = std::get_if<Hello>(&message); hello != nullptr && !peer.hello) return on_hello(peer, *hello);
  if (const auto* const greeting = std::get_if<Greeting>(&message); greeting != nullptr && peer.hello && peer.name.empty())
    return on_greeting(peer, *greeting);
  if (const auto* const state = std::get_if<State>(&message); state != nullptr && !peer.name.empty()) {
    on_state(peer, *state);
    return true;
  }
  complain(peer, "it sent an unexpected message");
  return false;
}

void TriggerServer::complain(Peer& peer, std::string_view what) {
  bad_messages_.fetch_add(1, std::memory_order_relaxed);
  if (peer.name.empty() && Clock::now() - complained_ > 1s) {
    complained_ = Clock::now();
    base::log_warning("{} does not speak the trigger protocol: {}", peer.where, what);
  }
  drop(peer, what);
}

bool TriggerServer::refuse(Peer& peer, Reason reason, std::string why) {
  refused_.fetch_add(1, std::memory_order_relaxed);
  base::log_warning("trigger follower {} ({}) is refused: {}", peer.hello->name, peer.where, why);
  (void)peer.connection.send(Refused{.reason = reason, .why = std::move(why)});
  peer.gone = true;
  return false;
}

bool TriggerServer::on_hello(Peer& peer, const Hello& hello) {
  peer.hello = hello;
  if (hello.version != kVersion)
    return refuse(peer, Reason::version,
                  fmt::format("it has version {} and this authority version {}", hello.version, kVersion));
  peer.connection.greet(transport::Handshake::Side::publisher, secret_);
  return true;
}

bool TriggerServer::on_greeting(Peer& peer, const Greeting& greeting) {
  if (const auto taken = peer.connection.on_greeting(greeting); !taken) {
    const bool secret = taken.error().code == "transport.secret";
    return refuse(peer, secret ? Reason::secret : Reason::version, secret ? std::string(kOtherSecret) : taken.error().what);
  }
  return !peer.connection.greeted() || admit(peer);
}

bool TriggerServer::admit(Peer& peer) {
  const Hello& hello = *peer.hello;
  if (hello.system != settings_.system)
    return refuse(peer, Reason::system, fmt::format("its system is `{}` and this one `{}`", hello.system, settings_.system));
  if (hello.seed != settings_.seed)
    return refuse(peer, Reason::seed,
                  fmt::format("its cards have seed {} and the cards here {}", hello.seed, settings_.seed));
  const auto follower = hello.name == settings_.name ? std::nullopt : authority_.join_peer(hello.name, peer.where);
  if (!follower) return refuse(peer, Reason::name_taken, fmt::format("the name `{}` is taken", hello.name));
  peer.follower = *follower;
  peer.name = hello.name;
  accepted_.fetch_add(1, std::memory_order_relaxed);
  base::log_info("trigger follower {} ({}, {}) joined", peer.name, peer.where, base::counted(hello.functions, "function"));
  peer.told = Clock::now();
  (void)peer.connection.send(Welcome{.timeout_ms = static_cast<std::uint32_t>(settings_.timeout.count()),
                                     .sequence = authority_.now().sequence,
                                     .name = settings_.name,
                                     .marks = authority_.marks()});
  return true;
}

void TriggerServer::on_state(Peer& peer, const State& state) {
  const std::uint64_t now = base::steady_now_ns();
  if (state.hold != peer.hold) {
    peer.hold = state.hold;
    (void)authority_.hold(now);
  }
  if (state.ready > 0 && peer.ready == 0) peer.begins = true;
  peer.ready = state.ready;
  peer.granted = std::max(peer.granted, state.granted);
  const std::uint64_t room = std::min(peer.granted - std::min(peer.granted, peer.sent), kMostAhead);
  authority_.set_peer(peer.follower, state.ready, state.busy, room, now);
}

/// Sends all new triggers. False: the peer is gone.
bool TriggerServer::send_triggers(Peer& peer) {
  bool all = false;
  while (!all && peer.connection.unsent_bytes() <= kMostUnsent) {
    const std::uint64_t now = base::steady_now_ns();
    const bool answers = peer.held != peer.hold;
    if (answers) (void)authority_.hold(now);
    ranges_.clear();
    const std::uint64_t count = authority_.take(peer.follower, kMostPerTurn, now, ranges_);
    all = count < kMostPerTurn;
    const auto time = Clock::now();
    if (count == 0 && !answers && time - peer.told < kHeartbeat) return true;
    peer.told = time;
    peer.sent += count;
    if (!send(peer, answers && all)) return false;
  }
  return true;
}

bool TriggerServer::send(Peer& peer, bool answers_hold) {
  const TriggerAuthority::Now at = authority_.now();
  triggers_.time_ns = at.time_ns;
  triggers_.ecrs = at.ecrs;
  std::span<const TriggerRange> left = ranges_;
  do {
    const auto some = left.first(std::min(left.size(), kMostRanges));
    left = left.subspan(some.size());
    // The last message contains the end of everything accepted before the hold.
    if (answers_hold && left.empty()) peer.held = peer.hold;
    triggers_.held = peer.held;
    triggers_.begins = peer.begins && !some.empty();
    triggers_.sequence = some.empty() ? peer.end : some.front().sequence;
    triggers_.ranges.assign(some.begin(), some.end());
    triggers_.firsts.clear();
    for (const TriggerRange& range : some) {
      const auto first = provable_.trigger(L1Id{range.l1id});
      triggers_.firsts.push_back({first.bcid, first.trigger_type});
      peer.end = range.sequence + range.count;
      peer.begins = false;
    }
    if (!peer.connection.send(triggers_)) return false;
  } while (!left.empty());
  return true;
}

void TriggerServer::report(TriggerReport& report) const {
  const auto add = [&](const char* name, const std::atomic<std::uint64_t>& value) {
    if (value > 0) report.counters.push_back({std::string(name), value});
  };
  add("followers_accepted", accepted_);
  add("followers_dropped", dropped_);
  add("followers_refused", refused_);
  add("bad_messages", bad_messages_);
}

}  // namespace rodeo::trigger
