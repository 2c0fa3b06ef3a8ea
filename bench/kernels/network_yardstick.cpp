// The yardstick of `bench/network_speed`: the basic work of an event-driven simulator. It has a heap of pending events; each
// event reads a packet somewhere in memory, changes it, and plans the next event. Its speed stands for the speed of the
// machine.
#include <ctime>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <queue>
#include <vector>

namespace {

constexpr std::uint64_t kEvents = 20'000'000;
constexpr std::uint32_t kPending = 65'536;    // the number of packets under way at the operating point
constexpr std::uint32_t kPackets = 1u << 18;  // 16 MiB of packets: more than a private cache

struct Packet {
  std::uint64_t words[8];
};

struct Event {
  std::uint64_t time;
  std::uint32_t packet;
  bool operator<(const Event& other) const { return other.time < time; }
};

std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

int main() {
  std::vector<Packet> packets(kPackets);
  std::vector<Event> first;
  first.reserve(kPending + 1);
  for (std::uint32_t i = 0; i < kPending; ++i) first.push_back({mixed(i) & 0xffffff, i});
  std::priority_queue<Event> pending(std::less<Event>(), std::move(first));
  const double begin = cpu_seconds();
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < kEvents; ++i) {
    const Event event = pending.top();
    pending.pop();
    Packet& packet = packets[event.packet];
    for (std::uint64_t& word : packet.words) word += event.time;
    sum += packet.words[i & 7];
    const std::uint64_t drawn = mixed(event.time + sum);
    pending.push({event.time + 1 + (drawn & 0xffffff), static_cast<std::uint32_t>(drawn >> 40) % kPackets});
  }
  const double seconds = cpu_seconds() - begin;
  std::printf("{\"events\": %llu, \"cpu_seconds\": %.4f, \"check\": %llu}\n", static_cast<unsigned long long>(kEvents),
              seconds, static_cast<unsigned long long>(sum));
  return EXIT_SUCCESS;
}
