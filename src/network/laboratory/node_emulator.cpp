#include "network/laboratory/node_emulator.h"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <thread>

#include "base/clock.h"
#include "base/thread.h"
#include "network/laboratory/sockets.h"

namespace rodeo::network::laboratory {

namespace {

constexpr std::size_t kScratchBytes = 256 * 1024;
constexpr std::uint64_t kControl = ~std::uint64_t{0};
constexpr std::uint64_t kPaced = kControl - 1;

void sleep_until(std::uint64_t at_ns) {
  const timespec until{static_cast<time_t>(at_ns / 1'000'000'000U), static_cast<long>(at_ns % 1'000'000'000U)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

void add_to(int epoll, int fd, std::uint64_t tag) {
  epoll_event event{.events = EPOLLIN, .data = {.u64 = tag}};
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

}  // namespace

rodeo::Result<void> NodeEmulator::connect(const std::vector<std::string>& readouts, const std::string& congestion_control) {
  connections_.clear();
  for (const std::string& readout : readouts) {
    auto socket = RODEO_TRY(connect_to(readout, congestion_control));
    connections_.emplace_back().socket = std::move(socket);
  }
  return {};
}

bool NodeEmulator::request(const ScheduledEvent& event) {
  const auto readouts = static_cast<std::uint32_t>(connections_.size());
  for (std::uint32_t i = 0; i < readouts; ++i) {
    const auto readout = static_cast<std::uint32_t>((event.number + i) % readouts);
    const auto bytes =
        encode(kRequestMagic, {.event = event.number, .bytes = fragment_bytes(event.bytes, readout, readouts)});
    if (send(connections_[readout].socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(bytes.size()))
      return false;
  }
  return true;
}

void NodeEmulator::pace(const std::vector<ScheduledEvent>& schedule, std::uint64_t start_ns, std::uint64_t end_ns,
                        std::uint32_t in_flight) {
  const bool real_time = become_real_time();
  for (const ScheduledEvent& event : schedule) {
    // The sum wraps correctly if at_ns is negative.
    const std::uint64_t due = start_ns + static_cast<std::uint64_t>(event.at_ns);
    sleep_until(due);
    const bool counts = event.at_ns >= 0;
    {
      std::unique_lock lock(mutex_);
      result_.real_time = real_time;
      const bool held = under_way_.size() >= in_flight;
      const auto left = std::chrono::nanoseconds(end_ns - std::min(end_ns, base::steady_now_ns()));
      if (held && !changed_.wait_for(lock, left, [&] { return stopped_ || under_way_.size() < in_flight; })) break;
      if (stopped_) break;
      const std::uint64_t now = base::steady_now_ns();
      under_way_[event.number] = {now, event.bytes, static_cast<std::uint32_t>(connections_.size()), counts};
      if (counts) {
        ++result_.requested;
        if (held)
          ++result_.held;
        else
          result_.lateness_ns.push_back(now - std::min(now, due));
      }
    }
    if (!request(event)) {
      const std::lock_guard lock(mutex_);
      wrong_ = fmt::format("a request could not be sent: {}", std::strerror(errno));
      break;
    }
  }
  const std::uint64_t one = 1;
  (void)!write(paced_.get(), &one, sizeof one);
}

bool NodeEmulator::finish_fragment(Connection& connection, std::uint64_t start_ns, std::uint64_t end_ns) {
  const std::lock_guard lock(mutex_);
  const auto found = under_way_.find(connection.event);
  if (found == under_way_.end()) return false;
  if (--found->second.missing > 0) return true;
  const std::uint64_t now = base::steady_now_ns();
  // Events under way at the start or the end count by their share of time within the run.
  const std::uint64_t requested = found->second.requested_ns;
  const std::uint64_t from = std::clamp(requested, start_ns, end_ns);
  const std::uint64_t to = std::clamp(now, from, end_ns);
  if (now > requested) result_.completed_in_time += static_cast<double>(to - from) / static_cast<double>(now - requested);
  if (found->second.counts) {
    ++result_.completed;
    result_.latencies_ns.push_back(now - found->second.requested_ns);
  }
  under_way_.erase(found);
  changed_.notify_one();
  return true;
}

bool NodeEmulator::read(Connection& connection, std::size_t readout, std::uint64_t start_ns, std::uint64_t end_ns) {
  const ssize_t n = recv(connection.socket.get(), scratch_.data(), scratch_.size(), 0);
  if (n <= 0) return n < 0 && (errno == EAGAIN || errno == EINTR);
  for (std::size_t at = 0; at < static_cast<std::size_t>(n);) {
    const std::size_t left = static_cast<std::size_t>(n) - at;
    if (connection.payload_left > 0) {
      const std::uint64_t taken = std::min<std::uint64_t>(left, connection.payload_left);
      connection.payload_left -= taken;
      at += static_cast<std::size_t>(taken);
      if (connection.payload_left == 0 && !finish_fragment(connection, start_ns, end_ns)) return false;
      continue;
    }
    const std::size_t taken = std::min(left, kMessageBytes - connection.head_filled);
    std::memcpy(connection.head.data() + connection.head_filled, scratch_.data() + at, taken);
    connection.head_filled += taken;
    at += taken;
    if (connection.head_filled < kMessageBytes) break;
    connection.head_filled = 0;
    const auto reply = decode(kReplyMagic, connection.head);
    if (!reply) return false;
    const std::lock_guard lock(mutex_);
    const auto found = under_way_.find(reply->event);
    const auto readouts = static_cast<std::uint32_t>(connections_.size());
    if (found == under_way_.end() ||
        reply->bytes != fragment_bytes(found->second.bytes, static_cast<std::uint32_t>(readout), readouts))
      return false;
    connection.event = reply->event;
    connection.payload_left = reply->bytes;
  }
  return true;
}

rodeo::Result<NodeEmulator::Result> NodeEmulator::run(const std::vector<ScheduledEvent>& schedule, std::uint64_t start_ns,
                                                      std::uint64_t duration_ns, std::uint64_t drain_ns,
                                                      std::uint32_t in_flight, int control) {
  const std::uint64_t end_ns = start_ns + duration_ns;
  const std::uint64_t last_ns = end_ns + drain_ns;
  result_ = {};
  result_.scheduled =
      static_cast<std::uint64_t>(std::ranges::count_if(schedule, [](const auto& event) { return event.at_ns >= 0; }));
  under_way_.clear();
  stopped_ = false;
  wrong_.clear();
  scratch_.resize(kScratchBytes);
  paced_ = base::UniqueFd(eventfd(0, EFD_CLOEXEC));
  const base::UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  for (std::size_t i = 0; i < connections_.size(); ++i) add_to(epoll.get(), connections_[i].socket.get(), i);
  add_to(epoll.get(), control, kControl);
  add_to(epoll.get(), paced_.get(), kPaced);

  std::thread pacing([&] {
    base::set_thread_name("pacing");
    pace(schedule, start_ns, end_ns, in_flight);
  });
  bool all_requested = false;
  std::array<epoll_event, 64> ready{};
  for (bool going = true; going;) {
    const std::uint64_t now = base::steady_now_ns();
    const auto left_ms =
        static_cast<int>(std::min<std::uint64_t>((last_ns - std::min(now, last_ns)) / 1'000'000 + 1, 60'000));
    const int n = epoll_wait(epoll.get(), ready.data(), static_cast<int>(ready.size()), left_ms);
    for (int i = 0; i < n && going; ++i) {
      const std::uint64_t tag = ready[static_cast<std::size_t>(i)].data.u64;
      if (tag == kControl) {  // no orders come during a run, so the laboratory is gone
        const std::lock_guard lock(mutex_);
        wrong_ = "the laboratory is gone";
        going = false;
      } else if (tag == kPaced) {
        all_requested = true;
        epoll_ctl(epoll.get(), EPOLL_CTL_DEL, paced_.get(), nullptr);
      } else if (!read(connections_[tag], tag, start_ns, end_ns)) {
        const std::lock_guard lock(mutex_);
        wrong_ = fmt::format("readout {} closed its connection or sent an unexpected reply", tag);
        going = false;
      }
    }
    const std::lock_guard lock(mutex_);
    if (!wrong_.empty() || (all_requested && under_way_.empty()) || base::steady_now_ns() >= last_ns) going = false;
  }
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }
  pacing.join();
  connections_.clear();
  if (!wrong_.empty()) return std::unexpected(Error{"network.agent", wrong_});
  return result_;
}

}  // namespace rodeo::network::laboratory
