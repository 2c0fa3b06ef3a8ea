#include "card/numa.h"

#include <hwloc.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include <fmt/format.h>

namespace rodeo::card {
namespace {

struct DestroyTopology {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, DestroyTopology>;

Topology load(const std::optional<SyntheticMachine>& machine) {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return nullptr;
  Topology owned(topology);
  // Leave out caches and devices: finding them takes time.
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
  if (machine && hwloc_topology_set_synthetic(topology, machine->topology.c_str()) != 0) return nullptr;
  if (hwloc_topology_load(topology) != 0) return nullptr;
  return owned;
}

std::optional<cpu_set_t> affinity_of(int thread) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(thread, sizeof set, &set) != 0) return std::nullopt;
  return set;
}

bool allowed(unsigned cpu, const std::optional<SyntheticMachine>& machine) {
  if (machine) return std::ranges::find(machine->allowed, cpu) != machine->allowed.end();
  const auto set = affinity_of(::getpid());
  return cpu < CPU_SETSIZE && set && CPU_ISSET(cpu, &*set);
}

/// "0-3,8"
std::string ranges(const std::vector<unsigned>& cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", cpus[i]);
    if (last > i) text += fmt::format("-{}", cpus[last]);
    i = last + 1;
  }
  return text;
}

ReaderPlace stays_free(std::string why) { return {.description = "free: " + std::move(why)}; }

std::vector<unsigned> nodes_of(hwloc_topology_t topology) {
  std::vector<unsigned> nodes;
  for (hwloc_obj_t node = nullptr; (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr;)
    nodes.push_back(node->os_index);
  std::ranges::sort(nodes);
  return nodes;
}

bool pin(const ReaderPlace& place) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const unsigned cpu : place.cpus) {
    if (cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
  }
  return ::sched_setaffinity(0, sizeof set, &set) == 0;
}

/// The calling thread's CPUs if it is not pinned: then it has the CPUs of the process.
std::optional<cpu_set_t> unpinned() {
  const auto own = affinity_of(0);
  const auto process = affinity_of(::getpid());
  return own && process && CPU_EQUAL(&*own, &*process) ? own : std::nullopt;
}

}  // namespace

Result<ReaderPlace> reader_place(std::string_view wanted, int card_node, const std::optional<SyntheticMachine>& machine) {
  if (wanted == "off") return stays_free("as asked");
  const bool by_card = wanted == "card";
  int number = card_node;
  if (!by_card) {
    const auto [end, failure] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), number);
    if (failure != std::errc{} || end != wanted.data() + wanted.size() || number < 0)
      return std::unexpected(Error{"card.bad_numa", fmt::format("`{}` is not a place for readers", wanted), "",
                                   "card (the card's NUMA node), off, or the number of a node"});
  }
  if (number < 0) return stays_free("the card's NUMA node is not known");
  const Topology topology = load(machine);
  if (topology == nullptr) return stays_free("hwloc cannot read the topology of this machine");
  const std::vector<unsigned> nodes = nodes_of(topology.get());
  if (by_card && nodes.size() < 2) return stays_free("this machine has one NUMA node");
  const hwloc_obj* node = hwloc_get_numanode_obj_by_os_index(topology.get(), static_cast<unsigned>(number));
  if (node == nullptr) {
    if (by_card) return stays_free(fmt::format("this machine has no NUMA node {}, which the card reports", number));
    return std::unexpected(
        Error{"card.bad_numa", fmt::format("there is no NUMA node {}", number), "", "there are: " + ranges(nodes)});
  }
  ReaderPlace place;
  for (int cpu = hwloc_bitmap_first(node->cpuset); cpu >= 0; cpu = hwloc_bitmap_next(node->cpuset, cpu)) {
    if (allowed(static_cast<unsigned>(cpu), machine)) place.cpus.push_back(static_cast<unsigned>(cpu));
  }
  if (place.cpus.empty()) return stays_free(fmt::format("this process may use no CPU of NUMA node {}", number));
  place.node = number;
  place.description = fmt::format("on NUMA node {} (CPUs {})", number, ranges(place.cpus));
  return place;
}

StayAtCard::StayAtCard(const ReaderPlace& place) {
  if (place.cpus.empty()) return;
  const auto before = unpinned();
  if (!before || !pin(place)) return;
  before_ = before;
  thread_ = ::gettid();
}

StayAtCard::~StayAtCard() {
  if (before_ && ::gettid() == thread_) (void)::sched_setaffinity(0, sizeof *before_, &*before_);
}

bool StayAtCard::may_end_here() const { return !before_ || ::gettid() == thread_; }

bool stay_at_card(const ReaderPlace& place) { return !place.cpus.empty() && unpinned().has_value() && pin(place); }

}  // namespace rodeo::card
