#include "bench/card/ceilings.h"

#include <emmintrin.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/child_process.h"
#include "base/clock.h"
#include "base/fd_socket.h"

namespace rodeo::bench {

namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr unsigned kTries = 8;

/// The best of kTries, because other load on the machine can only slow a try down. Each try continues in the memory where
/// the last one ended.
template <typename Work>
double per_second(std::size_t bytes, std::chrono::milliseconds time, Work work) {
  double best = 0;
  std::size_t at = 0;
  for (unsigned i = 0; i < kTries; ++i) {
    const std::uint64_t begin = base::steady_now_ns();
    const std::uint64_t end = begin + static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count()) / kTries;
    std::uint64_t done = 0;
    std::uint64_t now = begin;
    do {
      work(at);
      done += kPiece;
      at = at + 2 * kPiece <= bytes ? at + kPiece : 0;
      now = base::steady_now_ns();
    } while (now < end);
    best = std::max(best, static_cast<double>(done) / (static_cast<double>(std::max<std::uint64_t>(now - begin, 1)) * 1e-9));
  }
  return best;
}

/// Takes one message; polls first, then sleeps. False at the end of the connection.
bool receive(int socket, std::span<std::byte> bytes, std::chrono::microseconds spin) {
  const std::uint64_t patience = base::steady_now_ns() + static_cast<std::uint64_t>(std::chrono::nanoseconds(spin).count());
  std::size_t have = 0;
  bool sleeping = spin.count() == 0;
  while (have < bytes.size()) {
    const ssize_t got = ::recv(socket, bytes.data() + have, bytes.size() - have, sleeping ? 0 : MSG_DONTWAIT);
    if (got > 0) {
      have += static_cast<std::size_t>(got);
      continue;
    }
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) return false;
    if (errno == EAGAIN && base::steady_now_ns() > patience) sleeping = true;
  }
  return true;
}

// Sizes of a vfio-user register read: 16 bytes of header and 16 of request; the answer has the value after them.
constexpr std::size_t kQuestionBytes = 32;
constexpr std::size_t kAnswerBytes = 36;

void answer(int socket, std::chrono::microseconds spin) {
  std::array<std::byte, kAnswerBytes> bytes{};
  while (receive(socket, std::span(bytes).first(kQuestionBytes), spin)) {
    if (::send(socket, bytes.data(), kAnswerBytes, MSG_NOSIGNAL) != static_cast<ssize_t>(kAnswerBytes)) return;
  }
}

}  // namespace

double store_ceiling(std::span<std::byte> memory, std::chrono::milliseconds time) {
  if (memory.size() < kPiece) return 0;
  const __m128i value = _mm_set1_epi32(0x5a5a5a5a);
  const double rate = per_second(memory.size(), time, [&](std::size_t at) {
    auto* to = reinterpret_cast<__m128i*>(memory.data() + at);
    for (std::size_t i = 0; i < kPiece / sizeof(__m128i); ++i) _mm_stream_si128(to + i, value);
    _mm_sfence();
  });
  return rate;
}

double copy_ceiling(std::span<std::byte> memory, std::chrono::milliseconds time) {
  const std::size_t half = memory.size() / 2;
  if (half < kPiece) return 0;
  return per_second(half, time, [&](std::size_t at) { std::memcpy(memory.data() + half + at, memory.data() + at, kPiece); });
}

double ping_pong_ceiling(std::chrono::microseconds spin, std::chrono::milliseconds time) {
  std::array<int, 2> sockets{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) return 0;
  base::UniqueFd asking(sockets[0]);
  base::UniqueFd answering(sockets[1]);
  const auto child = base::ChildProcess::fork([&] {
    asking.reset();
    answer(answering.get(), spin);
  });
  answering.reset();
  double rate = 0;
  if (child) {
    std::array<std::byte, kAnswerBytes> bytes{};
    const std::uint64_t begin = base::steady_now_ns();
    const std::uint64_t end = begin + static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count());
    std::uint64_t exchanges = 0;
    std::uint64_t now = begin;
    while (now < end) {
      if (::send(asking.get(), bytes.data(), kQuestionBytes, MSG_NOSIGNAL) != static_cast<ssize_t>(kQuestionBytes)) break;
      if (!receive(asking.get(), bytes, spin)) break;
      ++exchanges;
      now = base::steady_now_ns();
    }
    rate = static_cast<double>(exchanges) / (static_cast<double>(now - begin) * 1e-9);
  }
  return rate;
}

}  // namespace rodeo::bench
