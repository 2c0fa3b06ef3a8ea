#include "network/laboratory/kernel_network.h"

#include <fmt/core.h>

#include <algorithm>

#include "network/laboratory/netlink.h"

namespace rodeo::network::laboratory {

namespace {

constexpr std::uint64_t kNoLimit = 2'000'000'000;  // limit of a shaper's queue: more than all windows together

std::string hardware_address(bool is_readout, std::uint32_t i) {
  return fmt::format("02:00:00:77:{:02x}:{:02x}", is_readout ? 1 : 2, i + 1);
}
std::string uplink_of(std::uint32_t rack) { return fmt::format("up_core{}", rack); }
std::string port_name(bool is_readout, std::uint32_t i) { return fmt::format("{}{}", is_readout ? 'r' : 'n', i); }

}  // namespace

std::string KernelNetwork::address(bool is_readout, std::uint32_t i) {
  return fmt::format("10.77.{}.{}", is_readout ? 1 : 2, i + 1);
}

Result<std::unique_ptr<KernelNetwork>> KernelNetwork::make(const Settings& settings) {
  std::unique_ptr<KernelNetwork> network(new KernelNetwork(settings));
  RODEO_TRY(network->make_namespaces());
  RODEO_TRY_WITHIN(network->make_switch(), "switch");
  for (const bool is_readout : {true, false}) {
    const auto& hosts = is_readout ? network->readouts_ : network->nodes_;
    for (std::uint32_t i = 0; i < hosts.size(); ++i)
      RODEO_TRY_WITHIN(network->make_host(hosts[i], is_readout, i), port_name(is_readout, i));
  }
  if (!buffered_by_shapers(settings.buffer)) RODEO_TRY(network->attach_pools());
  RODEO_TRY(network->set_buffer(settings.buffer));
  return network;
}

Result<void> KernelNetwork::make_namespaces() {
  const auto add = [](std::vector<NetworkNamespace>& list, std::uint32_t count) -> Result<void> {
    for (std::uint32_t i = 0; i < count; ++i) list.push_back(RODEO_TRY(NetworkNamespace::make()));
    return {};
  };
  switch_ = RODEO_TRY(NetworkNamespace::make());
  RODEO_TRY(add(readouts_, settings_.topology.readouts));
  return add(nodes_, settings_.topology.nodes);
}

/// A token bucket with room for 100 us or four frames. A smaller bucket loses rate when the kernel's timer is late: with two
/// frames a loaded machine drained 5 % too slowly. With a larger bucket the first frames of an event leave faster than the
/// link.
std::string KernelNetwork::shaper(std::uint64_t bps, std::uint64_t limit_bytes) const {
  const std::uint64_t frame = settings_.traffic.mtu_bytes + 14;
  return fmt::format("root tbf rate {}bit burst {} limit {}", bps, std::max(4 * frame, bps / 8 / 10'000), limit_bytes);
}

Result<void> KernelNetwork::make_switch() {
  const std::uint32_t mtu = settings_.traffic.mtu_bytes;
  std::string links = "link add core type bridge mcast_snooping 0\n";
  std::string up;
  std::string queues;
  std::vector<std::string> names{"core"};
  for (std::uint32_t rack = 0; rack < settings_.topology.racks; ++rack) {
    const std::string core = uplink_of(rack);
    const std::string tor = fmt::format("up_tor{}", rack);
    links += fmt::format("link add tor{} type bridge mcast_snooping 0\n", rack);
    links += fmt::format("link add {1} mtu {0} type veth peer name {2} mtu {0}\n", mtu, core, tor);
    links += fmt::format("link set {} master core\nlink set {} master tor{}\n", core, tor, rack);
    up += fmt::format("link set {} up\nlink set {} up\nlink set tor{} up\n", core, tor, rack);
    queues += fmt::format("qdisc add dev {} {}\n", core, shaper(settings_.topology.uplink_bps, kNoLimit));
    names.insert(names.end(), {core, tor, fmt::format("tor{}", rack)});
  }
  for (const bool is_readout : {true, false}) {
    const auto& hosts = is_readout ? readouts_ : nodes_;
    for (std::uint32_t i = 0; i < hosts.size(); ++i) {
      const std::string name = port_name(is_readout, i);
      links += fmt::format("link add {0} mtu {1} type veth peer name eth0 mtu {1} address {2} netns {3}\n", name, mtu,
                           hardware_address(is_readout, i), hosts[i].path());
      links += fmt::format("link set {} master {}\nlink set {} up\n", name,
                           is_readout ? std::string("core") : fmt::format("tor{}", i / nodes_per_rack()), name);
      names.push_back(name);
    }
  }
  links += up + "link set core up\n";
  for (std::uint32_t i = 0; i < nodes_.size(); ++i)
    queues += fmt::format("qdisc add dev n{} {}\n", i, shaper(settings_.topology.node_link_bps, kNoLimit));
  RODEO_TRY(switch_.inside([] {
    (void)write_setting("ipv6/conf/default/disable_ipv6", "1");  // a kernel without IPv6 has no such setting
    return Result<void>{};
  }));
  RODEO_TRY(switch_.batch("ip", links));
  RODEO_TRY(switch_.batch("tc", queues));
  return switch_.inside([&names]() -> Result<void> {
    for (const std::string& link : names) RODEO_TRY(no_large_packets(link));
    return {};
  });
}

Result<void> KernelNetwork::make_host(const NetworkNamespace& host, bool is_readout, std::uint32_t number) {
  RODEO_TRY(host.inside([]() -> Result<void> {
    (void)write_setting("ipv6/conf/default/disable_ipv6", "1");
    (void)write_setting("ipv6/conf/all/disable_ipv6", "1");
    for (const auto& [name, value] :
         {std::pair{"ipv4/tcp_slow_start_after_idle", "0"}, std::pair{"ipv4/tcp_no_metrics_save", "1"},
          std::pair{"ipv4/tcp_rmem", "4096 2097152 33554432"}, std::pair{"ipv4/tcp_wmem", "4096 2097152 33554432"}}) {
      RODEO_TRY(write_setting(name, value));
    }
    return no_large_packets("eth0");
  }));
  const std::uint64_t timeout_ms = std::max<std::uint64_t>(1, (settings_.tcp.rto_min_ns + 999'999) / 1'000'000);
  std::string links = fmt::format(
      "link set lo up\nlink set eth0 up\naddr add {}/16 dev eth0 noprefixroute\nroute add 10.77.0.0/16 dev eth0 rto_min "
      "{}ms\n",
      address(is_readout, number), timeout_ms);
  const std::uint32_t peers = is_readout ? settings_.topology.nodes : settings_.topology.readouts;
  for (std::uint32_t i = 0; i < peers; ++i)
    links += fmt::format("neigh add {} lladdr {} dev eth0 nud permanent\n", address(!is_readout, i),
                         hardware_address(!is_readout, i));
  RODEO_TRY(host.batch("ip", links));
  if (!is_readout || !settings_.limit_readout_links) return {};
  return host.batch("tc", fmt::format("qdisc add dev eth0 {}\n", shaper(settings_.topology.readout_link_bps, kNoLimit)));
}

Result<void> KernelNetwork::attach_pools() {
  for (std::uint32_t rack = 0; rack < settings_.topology.racks; ++rack)
    pools_.push_back(RODEO_TRY(SharedPool::make(nodes_per_rack())));
  const auto pool_of = [this](std::uint32_t node) -> SharedPool& { return pools_[node / nodes_per_rack()]; };
  RODEO_TRY(switch_.inside([&]() -> Result<void> {
    for (std::uint32_t i = 0; i < nodes_.size(); ++i)
      RODEO_TRY(attach_classifier(port_name(false, i), Hook::egress, pool_of(i).admit(i % nodes_per_rack())));
    return {};
  }));
  for (std::uint32_t i = 0; i < nodes_.size(); ++i)
    RODEO_TRY(nodes_[i].inside(
        [&] { return attach_classifier("eth0", Hook::ingress, pool_of(i).release(i % nodes_per_rack())); }));
  return {};
}

Result<std::uint64_t> KernelNetwork::drops_before_the_switch() const {
  std::uint64_t drops = 0;
  const auto add = [&drops](const std::string& link) -> Result<void> {
    drops += RODEO_TRY(queue_drops(link));
    return {};
  };
  RODEO_TRY(switch_.inside([&]() -> Result<void> {
    for (std::uint32_t rack = 0; rack < settings_.topology.racks; ++rack) RODEO_TRY(add(uplink_of(rack)));
    return {};
  }));
  if (!settings_.limit_readout_links) return drops;
  for (const NetworkNamespace& readout : readouts_) RODEO_TRY(readout.inside([&] { return add("eth0"); }));
  return drops;
}

Result<std::string> KernelNetwork::describe() {
  const std::string racks =
      settings_.topology.racks == 1 ? "" : fmt::format("{} racks, each with a ", settings_.topology.racks);
  if (pools_.empty()) return racks + "a tbf queue for each port (exact drops)";
  return racks + "shared pool by eBPF at the egress of each port (exact occupancy and drops), ports shaped by tbf";
}

Result<void> KernelNetwork::set_buffer(const SwitchBuffer& buffer) {
  if (!pools_.empty() && buffered_by_shapers(buffer))
    return std::unexpected(
        Error{"network.unsupported", "this network was made with a shared buffer", "", "make another one"});
  for (SharedPool& pool : pools_) RODEO_TRY(pool.set(buffer));
  if (!pools_.empty()) return {};
  std::string queues;
  for (std::uint32_t i = 0; i < nodes_.size(); ++i)
    queues += fmt::format("qdisc change dev n{} {}\n", i,
                          shaper(settings_.topology.node_link_bps, buffer.port_limit_bytes.value_or(kNoLimit)));
  return switch_.batch("tc", queues);
}

Result<void> KernelNetwork::start() {
  for (SharedPool& pool : pools_) RODEO_TRY(pool.forget_maximum());
  return {};
}

Result<SwitchCounters> KernelNetwork::counters() {
  SwitchCounters sum;
  const auto add = [&](std::uint32_t i, std::uint64_t drops) {
    sum.ports.push_back({port_name(false, i), drops});
    sum.drops += drops;
  };
  if (pools_.empty()) {
    RODEO_TRY(switch_.inside([&]() -> Result<void> {
      for (std::uint32_t i = 0; i < nodes_.size(); ++i) add(i, RODEO_TRY(queue_drops(port_name(false, i))));
      return {};
    }));
    return sum;
  }
  sum.max_buffer_bytes = sum.max_buffer_cell_bytes = 0;
  sum.occupancy_bytes = 0;
  sum.reasons = DropCount{};
  for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
    const auto port = RODEO_TRY(pools_[i / nodes_per_rack()].port(i % nodes_per_rack()));
    add(i, port.drops.total());
    *sum.reasons += port.drops;
    sum.max_buffer_bytes = std::max(*sum.max_buffer_bytes, port.max_pool_bytes);
    sum.max_buffer_cell_bytes = std::max(*sum.max_buffer_cell_bytes, port.max_cell_bytes);
  }
  for (const SharedPool& pool : pools_) *sum.occupancy_bytes += RODEO_TRY(pool.occupancy());
  return sum;
}

}  // namespace rodeo::network::laboratory
