// The laboratory's network in the kernel of this machine: one namespace a host and one for the switches, joined by veth
// pairs. It is also the driver of its own switch.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "network/laboratory/namespaces.h"
#include "network/laboratory/pool.h"
#include "network/laboratory/settings.h"
#include "network/laboratory/switch_driver.h"

namespace rodeo::network::laboratory {

class KernelNetwork final : public SwitchDriver {
 public:
  /// Needs root. Every rack has a switch with a pool; if the buffer has only port limits, the shapers provide them. Settings
  /// must have passed check(). Errors: network.needs_root, network.laboratory.
  static Result<std::unique_ptr<KernelNetwork>> make(const Settings& settings);

  const NetworkNamespace& readout(std::uint32_t i) const { return readouts_[i]; }
  const NetworkNamespace& node(std::uint32_t i) const { return nodes_[i]; }
  static std::string address(bool is_readout, std::uint32_t i);

  /// Frames lost at the uplink or at readouts, which have no limit. Anything but 0 is an error.
  Result<std::uint64_t> drops_before_the_switch() const;

  Result<std::string> describe() override;
  Result<void> set_buffer(const SwitchBuffer& buffer) override;
  Result<void> start() override;
  Result<SwitchCounters> counters() override;

 private:
  explicit KernelNetwork(const Settings& settings) : settings_(settings) {}
  Result<void> make_namespaces();
  Result<void> make_switch();
  Result<void> make_host(const NetworkNamespace& host, bool is_readout, std::uint32_t number);
  Result<void> attach_pools();
  std::uint32_t nodes_per_rack() const { return settings_.topology.nodes / settings_.topology.racks; }
  std::string shaper(std::uint64_t bps, std::uint64_t limit_bytes) const;

  Settings settings_;
  NetworkNamespace switch_;
  std::vector<NetworkNamespace> readouts_;
  std::vector<NetworkNamespace> nodes_;
  std::vector<SharedPool> pools_;  // one pool for each rack, or none
};

}  // namespace rodeo::network::laboratory
