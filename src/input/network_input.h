// NetworkInput: reads links that routers publish (docs/reference/formats/network-page.md), found on the bus.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "input/network_stream.h"
#include "input/offered_links.h"
#include "rodeo/plugin.h"

namespace rodeo::input {

struct NetworkInputSettings {
  std::filesystem::path bus;
  std::string name = "readout";
  std::vector<std::string> publishers = {};  ///< names; empty: all publishers
  std::vector<Fid> links;                    ///< empty: all links that the publishers have at the start
  std::string provider = "auto";
  std::filesystem::path secret_file;
  std::uint32_t pages = 64;
  std::uint32_t max_chunk_bytes = 0;  ///< 0: the limit that the publishers announce
  bool monitor = false;
  bool unbuffered = false;
  std::chrono::nanoseconds wait = std::chrono::seconds{10};
  std::chrono::nanoseconds silence = std::chrono::seconds{10};

  /// Reads the settings. Throws SetupError.
  static NetworkInputSettings from(const Parameters& parameters);
};

std::vector<Key> network_input_keys();

/// `type = "network"`. Each worker has its own connection to each publisher of its links. stop() asks publishers for the
/// data that they still have.
class NetworkInput final : public DataInput {
 public:
  /// Throws SetupError if, within `wait`, the bus had no links, or not all wanted links.
  explicit NetworkInput(NetworkInputSettings settings);

  std::span<const Fid> links() const override { return links_.all(); }
  std::unique_ptr<DataStream> open(std::span<const Fid> links) override;
  std::unique_ptr<DataStream> open_trigger_list() override;
  void start() override {}
  void stop() override;
  std::string failure() const override;

  /// True once each publisher has been connected since start(): data that are sent afterwards arrive here. Stays true. Any
  /// thread.
  bool connected() const;

  /// "sent" (chunks that arrived), "network_lost" (chunks that a publisher sent and that did not arrive),
  /// "network_cut_chunks" (only the start arrived), "network_cut_bytes", "network_lost_pages", "network_repeated_pages",
  /// "network_bad_pages", "network_connections", "network_cut_off" (publishers without an END). The trigger's lists have the
  /// same counters except "sent", with "list_" in front. "upstream_...": losses that routers report with their END.
  std::vector<NamedCounter> counters() const override;

 private:
  std::uint32_t longest_chunk(const std::vector<NetworkStream::Publisher>& publishers) const;
  std::unique_ptr<DataStream> open(const std::vector<NetworkStream::Publisher>& publishers, bool trigger_list);

  NetworkInputSettings settings_;
  std::string secret_;
  std::vector<transport::BusEntry> entries_;
  OfferedLinks links_;
  std::vector<std::unique_ptr<NetworkStream>> streams_;
  std::vector<std::unique_ptr<NetworkStream>> lists_;
};

}  // namespace rodeo::input
