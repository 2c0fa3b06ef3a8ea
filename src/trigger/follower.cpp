#include "trigger/follower.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/need.h"
#include "base/thread.h"

namespace rodeo::trigger {
namespace {

using namespace protocol;
using namespace std::chrono_literals;

constexpr auto kAgain = 500ms;  // interval between attempts to connect
constexpr auto kConnectPatience = 1s;
constexpr auto kHeartbeat = 500ms;
constexpr auto kStateEvery = 1ms;  // interval of STATE while functions are ready and room becomes free
constexpr auto kIdle = 100ms;
constexpr std::uint64_t kHeldForNs = 50'000'000;  // half of the authority's hold; the hold must then be renewed

}  // namespace

TriggerFollower::TriggerFollower(TriggerFollowerSettings settings)
    : settings_(std::move(settings)),
      address_(need(TriggerAddress::parse(settings_.address))),
      secret_(need(address_.secret(settings_.secret_file))),
      provable_(settings_.seed) {
  link_.address = settings_.address;
  link_.why = "not seen yet";
  thread_ = std::jthread([this] { run(); });
}

TriggerFollower::~TriggerFollower() {
  stop_ = true;
  wake_.wake();
  thread_.join();
}

void TriggerFollower::leave(Follower follower) {
  TriggerHub::leave(follower);
  wake_.wake();
}

void TriggerFollower::set_ready(Follower follower, bool ready, std::uint64_t) {
  {
    const std::lock_guard lock(mutex_);
    if (ledger_.is_ready(follower) == ready) return;
    ledger_.set_ready(follower, ready ? 1 : 0);
  }
  wake_.wake();
}

std::uint64_t TriggerFollower::take(Follower follower, std::uint64_t most, std::uint64_t, std::vector<TriggerRange>& out) {
  const std::lock_guard lock(mutex_);
  return ledger_.take(follower, most, out);
}

void TriggerFollower::done(Follower follower, std::uint64_t count) {
  bool much = false;
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t before = ledger_.room();
    ledger_.done(follower, count);
    // The thread looks each millisecond. This wakes it if the authority may use up the granted room before.
    const std::uint64_t room = ledger_.room();
    const std::uint64_t known = granted_ - std::min(granted_, received_);
    much = room > before && known < room / 2;
  }
  if (much) wake_.wake();
}

void TriggerFollower::set_busy(Follower follower, bool busy) {
  {
    const std::lock_guard lock(mutex_);
    if (ledger_.is_busy(follower) == busy) return;
    ledger_.set_busy(follower, busy);
  }
  wake_.wake();
}

bool TriggerFollower::hold(std::uint64_t now_ns) {
  {
    const std::lock_guard lock(mutex_);
    if (!welcome_) return true;  // no triggers can come
    if (held_ == hold_ && hold_ != 0 && now_ns - held_at_ns_ < kHeldForNs) return true;
    if (held_ != hold_) return false;  // the hold is already requested
    ++hold_;
  }
  wake_.wake();
  return false;
}

TriggerReport TriggerFollower::report() const {
  const std::lock_guard lock(mutex_);
  TriggerReport report = report_;
  report.seconds = static_cast<double>(time_ns_ - first_time_ns_) * 1e-9;
  ledger_.report(report);
  report.link = link_;
  return report;
}

std::optional<Error> TriggerFollower::refused() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

void TriggerFollower::wait(std::chrono::milliseconds time) {
  const auto until = Clock::now() + time;
  while (!stop_.load(std::memory_order_relaxed)) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return;
    pollfd poll{wake_.get(), POLLIN, 0};
    (void)::poll(&poll, 1, static_cast<int>(left));
    wake_.clear();
  }
}

void TriggerFollower::run() {
  base::set_thread_name("trigger follow");
  while (!stop_.load(std::memory_order_relaxed)) {
    auto socket = address_.connect(kConnectPatience);
    if (socket) {
      follow(TriggerConnection(std::move(*socket)));
    } else {
      log_loss(socket.error().what);
    }
    wait(kAgain);
  }
}

/// Logs each reason once.
void TriggerFollower::log_loss(const std::string& why) {
  bool had = false;
  {
    const std::lock_guard lock(mutex_);
    if (!welcome_ && link_.why == why) return;
    had = welcome_;
    if (had) ++link_.lost;
    welcome_ = link_.connected = false;
    link_.why = why;
  }
  if (stop_.load(std::memory_order_relaxed)) return;
  if (had) {
    base::log_error("the trigger authority at {} is lost: {}: no triggers until it is back; cards are served",
                    address_.text(), why);
  } else {
    base::log_warning("no trigger authority at {}: {}: no triggers; trying again", address_.text(), why);
  }
}

void TriggerFollower::follow(TriggerConnection connection) {
  {
    const std::lock_guard lock(mutex_);
    welcome_ = false;
    received_ = granted_ = expected_ = 0;
    hold_ = held_ = 0;
    told_ = {};
  }
  if (!connection.send(Hello{.functions = static_cast<std::uint16_t>(std::clamp(settings_.functions, 1U, kMostFunctions)),
                             .seed = settings_.seed,
                             .system = settings_.system,
                             .name = settings_.name}))
    return log_loss("it is gone");
  auto heard = Clock::now();
  auto told = heard;
  auto looked = heard;
  std::string why;
  while (!stop_.load(std::memory_order_relaxed)) {
    pollfd polled[2]{{connection.fd(), static_cast<short>(connection.unsent_bytes() > 0 ? POLLIN | POLLOUT : POLLIN), 0},
                     {wake_.get(), POLLIN, 0}};
    std::chrono::nanoseconds patience = kIdle;
    {
      const std::lock_guard lock(mutex_);
      const auto look = Clock::now();
      ledger_.held_up(0, static_cast<std::uint64_t>((look - std::exchange(looked, look)).count()));
      if (ledger_.ready_functions() > 0) patience = kStateEvery;
    }
    const timespec time{0, static_cast<long>(patience.count())};
    (void)::ppoll(polled, 2, &time, nullptr);
    if (polled[1].revents != 0) wake_.clear();
    bool here = true;
    if (polled[0].revents != 0) {
      here = connection.receive();
      for (;;) {
        auto message = connection.next();
        if (!message) return log_loss(std::string("it sent ") + std::string(message.error()));
        if (!*message) break;
        if (!on_message(connection, **message, why)) return log_loss(why);
        heard = Clock::now();
      }
    }
    const auto now = Clock::now();
    if (!here) return log_loss("the connection has ended");
    if (now - heard > timeout_) return log_loss(fmt::format("nothing has arrived from it for {} ms", timeout_.count()));
    const bool heartbeat = now - told >= kHeartbeat;
    if (!send_state(connection, heartbeat)) return log_loss("the connection has ended");
    if (heartbeat) told = now;
  }
}

State TriggerFollower::state() const {
  State state{.ready = static_cast<std::uint16_t>(ledger_.ready_functions()), .busy = ledger_.any_busy(), .hold = hold_};
  // Granted room stays granted. Followers that are not ready discard the triggers.
  state.granted = std::max(granted_, received_ + ledger_.room());
  return state;
}

bool TriggerFollower::send_state(TriggerConnection& connection, bool heartbeat) {
  State now;
  {
    const std::lock_guard lock(mutex_);
    if (!welcome_) return true;
    now = state();
    if (now == told_ && !heartbeat) return true;
    told_ = now;
    granted_ = now.granted;
  }
  return connection.send(now);
}

/// Keeps the reason of a refusal. If this process never followed, it ends with that reason.
void TriggerFollower::refused_for(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (link_.connections != 0) return;
  refused_ =
      Error{"trigger.refused", fmt::format("the trigger authority at {}: {}", address_.text(), why), "",
            "give both the same emulator.trigger.system and secret, all cards the same seed, and each process its own "
            "name"};
}

bool TriggerFollower::on_greeting(TriggerConnection& connection, const Greeting& greeting, std::string& why) {
  if (!connection.greets()) connection.greet(transport::Handshake::Side::subscriber, secret_);
  const auto taken = connection.on_greeting(greeting);
  if (taken) return true;
  why = taken.error().code == "transport.secret" ? std::string(kOtherSecret) : taken.error().what;
  refused_for(why);
  return false;
}

bool TriggerFollower::on_message(TriggerConnection& connection, const Message& message, std::string& why) {
  if (const auto* refused = std::get_if<Refused>(&message)) {
    why = refused->version != kVersion
              ? fmt::format("it has version {} and this process version {}", refused->version, kVersion)
              : "it refuses this process: " + refused->why;
    refused_for(why);
    return false;
  }
  if (const auto* greeting = std::get_if<Greeting>(&message)) return on_greeting(connection, *greeting, why);
  const std::lock_guard lock(mutex_);
  if (const auto* welcome = std::get_if<Welcome>(&message); welcome != nullptr && !welcome_ && connection.greeted()) {
    if (welcome->version != kVersion) {
      why = fmt::format("it has version {} and this process version {}", welcome->version, kVersion);
      return false;
    }
    welcome_ = link_.connected = true;
    ++link_.connections;
    link_.authority = welcome->name;
    link_.why.clear();
    report_.marks = welcome->marks;
    refused_.reset();
    timeout_ = std::chrono::milliseconds(std::clamp<std::uint32_t>(welcome->timeout_ms, 100, 3'600'000));
    base::log_info("follows the trigger authority {} at {}, from trigger {}", welcome->name, address_.text(),
                   welcome->sequence);
    return true;
  }
  const auto* triggers = std::get_if<Triggers>(&message);
  if (triggers == nullptr || !welcome_) {
    why = "it sent an unexpected message";
    return false;
  }
  return on_triggers(*triggers, why);
}

/// The caller holds mutex_.
bool TriggerFollower::on_triggers(const Triggers& triggers, std::string& why) {
  std::uint64_t count = 0;
  for (const TriggerRange& range : triggers.ranges) count += range.count;
  if (count > granted_ - std::min(granted_, received_)) {
    why = "it sent more triggers than it was granted";
    return false;
  }
  if (count > 0 && triggers.sequence != expected_ && !triggers.begins) {
    why = fmt::format("it sent trigger {} where {} comes next", triggers.sequence, expected_);
    return false;
  }
  for (std::size_t i = 0; i < triggers.ranges.size(); ++i) {
    const auto of = provable_.trigger(L1Id{triggers.ranges[i].l1id});
    if (triggers.firsts[i] != FirstTrigger{of.bcid, of.trigger_type}) {
      why = fmt::format("BCID or type of trigger {:#x} do not follow from seed {}", triggers.ranges[i].l1id, settings_.seed);
      return false;
    }
  }
  for (const TriggerRange& range : triggers.ranges) {
    ledger_.append(range);
    if (!report_.marks.empty() && report_.marks.back().lumi_block == range.lumi_block &&
        report_.marks.back().scan_step == range.scan_step)
      continue;
    if (report_.marks.size() >= kMostMarks) report_.marks.erase(report_.marks.begin());
    report_.marks.push_back({range.id_of(0), range.lumi_block, range.scan_step});
  }
  if (!report_.marks.empty()) {
    report_.lumi_block = report_.marks.back().lumi_block;
    report_.scan_step = report_.marks.back().scan_step;
  }
  if (count > 0) {
    if (report_.accepted == 0) first_time_ns_ = triggers.time_ns;
    expected_ = triggers.sequence + count;
  }
  received_ += count;
  report_.accepted += count;
  report_.ecrs = triggers.ecrs;
  // A restarted authority begins its time again.
  if (triggers.time_ns < time_ns_) first_time_ns_ = triggers.time_ns;
  time_ns_ = std::max(triggers.time_ns, first_time_ns_);
  if (triggers.held == hold_ && held_ != hold_) {
    held_ = hold_;
    held_at_ns_ = base::steady_now_ns();
  }
  return true;
}

}  // namespace rodeo::trigger
