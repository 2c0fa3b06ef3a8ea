// The client of an event sampler's socket, used by `rodeo events` (docs/reference/formats/sampling.md).
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/fd_socket.h"
#include "readout/consumer/sample_message.h"

namespace rodeo::readout {

struct Sample {
  SampleHeader header;
  std::vector<std::byte> event;  ///< a full event, not yet checked
};

/// One thread.
class SampleClient {
 public:
  /// Connects to the readout of this name on this machine; an empty name means the only readout. Error readout.no_sampler if
  /// there is none, readout.which_sampler if the name is empty and there are several.
  static Result<SampleClient> connect(std::string_view readout_name);
  static Result<SampleClient> connect_to(const std::filesystem::path& socket);

  enum class Outcome : std::uint8_t { sample, nothing, end };
  /// Waits up to `patience` for the next sample. Nothing: no sample arrived in time; the next call continues with a partly
  /// received one. End: the run is over. Error readout.sample_protocol if the other side uses another protocol.
  Result<Outcome> next(Sample& sample, std::chrono::milliseconds patience);

 private:
  SampleClient(base::UniqueFd socket, std::filesystem::path path) : socket_(std::move(socket)), path_(std::move(path)) {}

  base::UniqueFd socket_;
  std::filesystem::path path_;
  std::vector<std::byte> received_;
};

}  // namespace rodeo::readout
