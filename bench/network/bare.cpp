#include "bench/network/bare.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/arena.h"
#include "base/clock.h"
#include "base/thread.h"
#include "transport/fabric.h"

namespace rodeo::bench {

using transport::FabricPort;

namespace {

constexpr std::uint32_t kSlots = 64;  // the pages that a subscription has under way
/// The token by which a port identifies a connection.
transport::FabricToken token_of(std::uint32_t connection) {
  return {std::byte{0xb0}, std::byte{0x0e}, static_cast<std::byte>(connection), static_cast<std::byte>(connection >> 8)};
}
constexpr std::uint32_t kPollsBetweenLooks = 256;  // polls between two reads of the socket for the end
constexpr std::uint64_t kGone = ~std::uint64_t{0};

template <typename T>
T need(Result<T> result) {
  if (!result) throw SetupError(std::move(result.error()));
  return std::move(*result);
}
void need(Result<void> result) {
  if (!result) throw SetupError(std::move(result.error()));
}

[[noreturn]] void fail(const std::string& doing) {
  throw SetupError({"bench.processes", doing + ": " + std::strerror(errno)});
}

void say(int socket, std::span<const std::byte> message) {
  if (::send(socket, message.data(), message.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(message.size()))
    fail("a bench's socket");
}

/// One end of a connection: sends its slots in turn, or receives pages into any of them.
class BareEnd {
 public:
  /// Both ends of a connection have the same socket and number.
  struct Line {
    int socket = -1;
    std::uint32_t number = 0;
  };

  BareEnd(FabricPort& port, std::size_t page_bytes, Line line)
      : port_(port),
        page_bytes_(page_bytes),
        socket_(line.socket),
        token_(token_of(line.number)),
        memory_(need(base::Arena::create(kSlots * page_bytes))) {
    end_ = need(port_.open({memory_.data(), memory_.size()}, page_bytes));
  }

  // The two sides send their addresses in this order.
  void begin_receiving() {
    say(socket_, port_.address(end_));
    need(port_.connect(end_, hear(), token_));
  }
  void begin_sending() {
    need(port_.accept(end_, token_, hear()));
    say(socket_, port_.listens_at());
  }

  bool take(const FabricPort::Event& event) {
    if (event.connection != end_) return false;
    switch (event.what) {
      case FabricPort::Event::What::connected: connected_ = true; break;
      case FabricPort::Event::What::sent: ++done_; break;
      case FabricPort::Event::What::received:
        ++came_;
        free_.push_back(event.slot);
        break;
      case FabricPort::Event::What::broken:
        broken_ = true;
        // An end that has sent or received everything may disconnect. A sender checks this at once, a receiver when it waits
        // for more.
        if (posted_ == 0 && !taken()) fail_broken();
        break;
    }
    return true;
  }
  bool connected() const { return connected_; }

  // ---- sending

  bool send(std::size_t bytes) {
    if (credit_ - sent_ < kSlots / 2) look_for_credit();
    if (sent_ == credit_ || sent_ - done_ == kSlots || !port_.send(end_, static_cast<std::uint32_t>(sent_ % kSlots), bytes))
      return false;
    ++sent_;
    return true;
  }
  /// The next slot to send; empty if it is still under way.
  std::span<std::byte> next() const {
    return sent_ - done_ == kSlots ? std::span<std::byte>()
                                   : std::span(memory_.data() + sent_ % kSlots * page_bytes_, page_bytes_);
  }
  bool all_sent() const { return done_ == sent_; }
  void say_total() { say_number(sent_); }
  /// True if the other side has received all pages.
  bool taken() {
    look_for_credit();
    return credit_ == kGone;
  }

  // ---- receiving

  /// Posts all slots at first; later, posts the slots whose pages have arrived.
  void give_back() {
    if (posted_ == 0) {
      for (std::uint32_t slot = 0; slot < kSlots; ++slot) free_.push_back(slot);
    }
    for (; !free_.empty() && port_.receive(end_, free_.back()); free_.pop_back()) ++posted_;
    if (posted_ - told_ < kSlots / 4) return;
    told_ = posted_;
    say_number(told_);
  }
  std::uint64_t came() const { return came_; }
  /// True if the sender has sent the total, and all pages have arrived. `ending`: the total will arrive soon.
  bool complete(bool ending = false) {
    if (!total_ && (++polls_ % kPollsBetweenLooks == 0 || ending || broken_)) total_ = heard();
    const bool all_here = total_ && came_ == *total_;
    if (broken_ && !all_here) fail_broken();
    return all_here;
  }
  void say_gone() { say_number(kGone); }

 private:
  [[noreturn]] static void fail_broken() { throw SetupError({"bench.processes", "the bare connection broke"}); }
  std::vector<std::byte> hear() const {
    std::vector<std::byte> message(1024);
    const ssize_t got = ::recv(socket_, message.data(), message.size(), 0);
    if (got < 0) fail("a bench's socket");
    message.resize(static_cast<std::size_t>(got));
    return message;
  }
  std::optional<std::uint64_t> heard() const {
    std::uint64_t number = 0;
    if (::recv(socket_, &number, sizeof number, MSG_DONTWAIT) != sizeof number) return std::nullopt;
    return number;
  }
  void say_number(std::uint64_t number) { say(socket_, std::as_bytes(std::span(&number, 1))); }
  void look_for_credit() {
    while (const auto credit = heard()) credit_ = *credit;
  }

  FabricPort& port_;
  const std::size_t page_bytes_;
  const int socket_;
  const transport::FabricToken token_;
  base::Arena memory_;
  FabricPort::Connection end_ = 0;
  bool connected_ = false;
  bool broken_ = false;
  std::uint64_t credit_ = 0, sent_ = 0, done_ = 0;
  std::uint64_t posted_ = 0, told_ = 0, came_ = 0;
  std::vector<std::uint32_t> free_;
  std::optional<std::uint64_t> total_;
  std::uint32_t polls_ = 0;
};

/// Returns true if something happened.
bool poll(FabricPort& port, std::span<BareEnd* const> ends) {
  FabricPort::Event events[32];
  const std::size_t count = port.poll(events);
  for (const FabricPort::Event& event : std::span(events).first(count)) {
    for (BareEnd* end : ends) {
      if (end->take(event)) break;
    }
  }
  return count > 0;
}
bool poll(FabricPort& port, std::initializer_list<BareEnd*> ends) {
  return poll(port, std::span<BareEnd* const>(ends.begin(), ends.size()));
}

/// All ends of one port.
struct Ends {
  std::vector<std::unique_ptr<BareEnd>> owned;
  std::vector<BareEnd*> all;

  Ends(FabricPort& port, std::size_t page_bytes, std::span<const BareEnd::Line> lines) {
    for (const BareEnd::Line line : lines)
      all.push_back(owned.emplace_back(std::make_unique<BareEnd>(port, page_bytes, line)).get());
  }
};

bool stopped(const Meeting& meeting) { return meeting.stop.load(std::memory_order_relaxed); }

void send_pages(Meeting& meeting, const std::string& provider, std::size_t page_bytes, bool filled,
                std::span<const BareEnd::Line> lines) {
  base::set_thread_name("bare-sender");
  const auto port = need(transport::open_fabric(provider, "127.0.0.1"));
  const Ends ends(*port, page_bytes, lines);
  for (BareEnd* end : ends.all) end->begin_sending();
  const base::Arena source = need(base::Arena::create(kSlots * page_bytes));
  std::size_t at = 0;
  std::vector<bool> ready(ends.all.size());  // true: the next page is filled
  base::Backoff backoff;
  while (!stopped(meeting)) {
    bool moved = false;
    for (std::size_t i = 0; i < ends.all.size(); ++i) {
      BareEnd& end = *ends.all[i];
      while (end.connected()) {
        // Fill it once for each time that it is sent.
        if (const std::span<std::byte> page = end.next(); filled && !page.empty() && !ready[i]) {
          std::memcpy(page.data(), source.data() + at, page.size());
          at = (at + page.size()) % source.size();
          ready[i] = true;
        }
        if (!end.send(page_bytes)) break;
        moved = true;
        ready[i] = false;
      }
    }
    poll(*port, ends.all) || moved ? backoff.reset() : backoff.idle();
  }
  const auto wait_for_all = [&](bool (*condition)(BareEnd*)) {
    while (!std::ranges::all_of(ends.all, condition)) poll(*port, ends.all) ? backoff.reset() : backoff.idle();
  };
  wait_for_all([](BareEnd* end) { return end->all_sent(); });
  for (BareEnd* end : ends.all) end->say_total();
  wait_for_all([](BareEnd* end) { return end->taken(); });
}

void receive_pages(Meeting& meeting, const std::string& provider, std::size_t page_bytes,
                   std::span<const BareEnd::Line> lines) {
  base::set_thread_name("bare-receiver");
  const auto port = need(transport::open_fabric(provider, ""));
  const Ends ends(*port, page_bytes, lines);
  for (BareEnd* end : ends.all) end->begin_receiving();
  std::uint64_t told = 0;
  base::Backoff backoff;
  for (bool complete = false; !complete;) {
    const bool moved = poll(*port, ends.all);
    std::uint64_t came = 0;
    complete = true;
    for (BareEnd* end : ends.all) {
      if (end->connected()) end->give_back();
      came += end->came();
      complete = end->complete(stopped(meeting)) && complete;
    }
    meeting.bytes.fetch_add((came - told) * page_bytes, std::memory_order_relaxed);
    told = came;
    moved ? backoff.reset() : backoff.idle();
  }
  for (BareEnd* end : ends.all) end->say_gone();
}

/// Both sides of the ping-pong have both ends.
struct Player {
  std::unique_ptr<FabricPort> port;
  BareEnd out;
  BareEnd in;
  base::Backoff backoff{base::IdlePolicy::yield};

  Player(const std::string& provider, std::size_t bytes, int out_socket, int in_socket)
      : port(need(transport::open_fabric(provider, "127.0.0.1"))),
        out(*port, bytes, {out_socket, 0}),
        in(*port, bytes, {in_socket, 0}) {}

  bool move() {
    const bool moved = poll(*port, {&out, &in});
    if (in.connected()) in.give_back();
    moved ? backoff.reset() : backoff.idle();
    return moved;
  }
};

void ask(Meeting& meeting, const std::string& provider, std::size_t bytes, int there, int back) {
  Player player(provider, bytes, there, back);
  player.out.begin_sending();
  player.in.begin_receiving();
  while (!player.out.connected() || !player.in.connected()) player.move();
  while (!stopped(meeting)) {
    while (!player.out.send(bytes) && !stopped(meeting)) player.move();
    const std::uint64_t begin = base::steady_now_ns();
    const std::uint64_t before = player.in.came();
    while (player.in.came() == before && !stopped(meeting)) player.move();
    if (player.in.came() == before) break;
    meeting.latency.record((base::steady_now_ns() - begin) / 2);
    meeting.bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  while (!player.out.all_sent()) player.move();
  player.out.say_total();
  while (!player.out.taken()) player.move();
}

void answer(const std::string& provider, std::size_t bytes, int there, int back) {
  Player player(provider, bytes, back, there);
  player.in.begin_receiving();
  player.out.begin_sending();
  std::uint64_t answered = 0;
  while (!player.in.complete() || !player.out.all_sent()) {
    player.move();
    while (answered < player.in.came() && player.out.connected() && player.out.send(bytes)) ++answered;
  }
  player.in.say_gone();
}

}  // namespace

SocketPair SocketPair::messages() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) fail("a pair of sockets");
  return {{base::UniqueFd(ends[0]), base::UniqueFd(ends[1])}};
}

SocketPair SocketPair::tcp() {
  const base::UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  auto* const at = reinterpret_cast<sockaddr*>(&address);
  if (!listener || ::bind(listener.get(), at, bytes) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), at, &bytes) != 0)
    fail("a listening socket");
  base::UniqueFd one(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!one || ::connect(one.get(), at, bytes) != 0) fail("a connection over loopback");
  base::UniqueFd other(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!other) fail("a connection over loopback");
  const int on = 1;
  (void)::setsockopt(one.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return {{std::move(one), std::move(other)}};
}

Window bare_pages(const std::string& provider, std::size_t page_bytes, bool filled, double seconds, BareMesh mesh) {
  const SharedMeeting meeting;
  std::vector<SocketPair> pairs;
  for (std::uint32_t i = 0; i < mesh.senders * mesh.receivers; ++i) pairs.push_back(SocketPair::messages());
  const auto lines_of = [&](std::size_t side, std::uint32_t which) {
    std::vector<BareEnd::Line> lines;
    for (std::uint32_t at = 0; at < pairs.size(); ++at) {
      if ((side == 0 ? at / mesh.receivers : at % mesh.receivers) == which)
        lines.push_back({pairs[at].ends[side].get(), at});
    }
    return lines;
  };
  return measure(
      *meeting, seconds,
      [&] {
        in_threads(mesh.senders, *meeting,
                   [&](std::uint32_t i) { send_pages(*meeting, provider, page_bytes, filled, lines_of(0, i)); });
      },
      [&] {
        in_threads(mesh.receivers, *meeting,
                   [&](std::uint32_t i) { receive_pages(*meeting, provider, page_bytes, lines_of(1, i)); });
      });
}

Window socket_pages(std::size_t page_bytes, double seconds) {
  const SharedMeeting meeting;
  const SocketPair sockets = SocketPair::tcp();
  const auto memory = [&] { return need(base::Arena::create(kSlots * page_bytes)); };
  return measure(
      *meeting, seconds,
      [&] {
        const base::Arena pages = memory();
        for (std::size_t page = 0; !stopped(*meeting); page = (page + 1) % kSlots) {
          std::size_t at = 0;
          while (at < page_bytes) {
            const ssize_t put =
                ::send(sockets.ends[0].get(), pages.data() + page * page_bytes + at, page_bytes - at, MSG_NOSIGNAL);
            if (put < 0) fail("a plain socket");
            at += static_cast<std::size_t>(put);
          }
        }
        (void)::shutdown(sockets.ends[0].get(), SHUT_WR);
      },
      [&] {
        const base::Arena pages = memory();
        for (std::size_t page = 0;; page = (page + 1) % kSlots) {
          const ssize_t got = ::recv(sockets.ends[1].get(), pages.data() + page * page_bytes, page_bytes, MSG_WAITALL);
          if (got < 0) fail("a plain socket");
          if (got == 0) return;
          meeting->bytes.fetch_add(static_cast<std::uint64_t>(got), std::memory_order_relaxed);
        }
      });
}

double bare_half_round_trip_ns(const std::string& provider, std::size_t bytes, double seconds) {
  const SharedMeeting meeting;
  const SocketPair there = SocketPair::messages();
  const SocketPair back = SocketPair::messages();
  measure(
      *meeting, seconds, [&] { ask(*meeting, provider, bytes, there.ends[0].get(), back.ends[0].get()); },
      [&] { answer(provider, bytes, there.ends[1].get(), back.ends[1].get()); });
  base::LatencySummary all;
  meeting->latency.add_to(all);
  return static_cast<double>(all.percentile_ns(0.5));
}

}  // namespace rodeo::bench
