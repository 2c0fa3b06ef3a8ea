#include "bench/network/two_processes.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <exception>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/child_process.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/runtime_dir.h"

namespace rodeo::bench {

using namespace std::chrono_literals;

namespace {

constexpr auto kPatience = 30s;  // limit for the start of both, and for their end
constexpr auto kWarmUp = 50ms;

[[noreturn]] void fail(std::string what) { throw SetupError({"bench.processes", std::move(what)}); }

void keep(Meeting::Side& side, const Error& error) {
  const auto copy = [](std::string_view from, std::span<char> to) {
    std::memcpy(to.data(), from.data(), std::min(from.size(), to.size() - 1));
  };
  copy(error.code, side.code);
  copy(error.what, side.what);
  side.failed.store(true, std::memory_order_release);
}

Result<base::ChildProcess> fork(Meeting::Side& side, const std::function<void()>& work) {
  return base::ChildProcess::fork([&] {
    try {
      work();
    } catch (const SetupError& error) {
      keep(side, error.error());
      throw;
    } catch (const std::exception& error) {
      keep(side, {"bench.processes", error.what()});
      throw;
    }
  });
}

void check(const Meeting::Side& side) {
  if (side.failed.load(std::memory_order_acquire)) throw SetupError({side.code, side.what});
}

double cpu_seconds(const base::ChildProcess& process) {
  clockid_t clock{};
  timespec used{};
  if (process.pid() < 0 || ::clock_getcpuclockid(process.pid(), &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

}  // namespace

SharedMeeting::SharedMeeting()
    : memory_(::mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), sizeof(Meeting)) {
  if (!memory_) fail(std::string("no shared memory: ") + std::strerror(errno));
  new (memory_.data()) Meeting{};
}

BenchFolder::BenchFolder() {
  auto parent = base::runtime_directory();
  if (!parent) throw SetupError(std::move(parent.error()));
  path_ = *parent / fmt::format("bench-{}", ::getpid());
  std::filesystem::create_directories(path_);
}

BenchFolder::~BenchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

int rounds_of(double seconds) { return seconds < 0.5 ? 1 : 5; }

void in_threads(std::uint32_t count, Meeting& meeting, const std::function<void(std::uint32_t)>& work) {
  std::vector<std::exception_ptr> failures(count);
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 0; i < count; ++i)
      threads.emplace_back([&, i] {
        try {
          work(i);
        } catch (...) {
          failures[i] = std::current_exception();
          meeting.stop.store(true);
        }
      });
  }
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

Window measure(Meeting& meeting, double seconds, const std::function<void()>& sender,
               const std::function<void()>& receiver) {
  auto sends = fork(meeting.sender, sender);
  if (!sends) throw SetupError(sends.error());
  auto receives = fork(meeting.receiver, receiver);
  if (!receives) throw SetupError(receives.error());

  const auto check_both = [&] {
    check(meeting.sender);
    check(meeting.receiver);
  };
  // Wait until more than this number of bytes have arrived: otherwise a busy machine could give a rate of 0.
  const auto wait_for_more = [&](std::uint64_t than) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (meeting.bytes.load(std::memory_order_relaxed) <= than) {
      check_both();
      if (sends->wait(0ms) || receives->wait(0ms)) {
        check_both();
        fail("a process of the bench has ended early");
      }
      if (std::chrono::steady_clock::now() > end) fail(fmt::format("no data arrived within {} s", kPatience / 1s));
      std::this_thread::sleep_for(1ms);
    }
  };
  struct Look {
    std::uint64_t ns, chunks, bytes;
    double sender, receiver;
  };
  const auto look = [&] {
    return Look{base::steady_now_ns(), meeting.chunks.load(std::memory_order_relaxed),
                meeting.bytes.load(std::memory_order_relaxed), cpu_seconds(*sends), cpu_seconds(*receives)};
  };
  wait_for_more(0);
  std::this_thread::sleep_for(kWarmUp);
  const Look begin = look();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  wait_for_more(begin.bytes);
  const Look end = look();
  meeting.stop.store(true, std::memory_order_release);
  const auto sent = sends->wait(kPatience);
  const auto received = receives->wait(kPatience);
  check_both();
  if (!sent || !received) fail("a process of the bench does not end");
  if (*sent != 0 || *received != 0) fail(fmt::format("the processes of the bench ended with {} and {}", *sent, *received));
  return {.seconds = static_cast<double>(end.ns - begin.ns) * 1e-9,
          .chunks = static_cast<double>(end.chunks - begin.chunks),
          .bytes = static_cast<double>(end.bytes - begin.bytes),
          .sender_cpu_seconds = end.sender - begin.sender,
          .receiver_cpu_seconds = end.receiver - begin.receiver};
}

}  // namespace rodeo::bench
