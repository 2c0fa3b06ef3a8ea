// The receiver for the consumer `publish`: it gets the fragments of a readout from the network
// (docs/reference/formats/fragment-stream.md).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "input/network_stream.h"
#include "readout/consumer/sample_client.h"

namespace rodeo::readout {

struct EventSubscriberSettings {
  std::string bus = {};         ///< empty: transport::default_bus()
  std::string stream = {};      ///< name on the bus; empty: the only stream on the bus
  std::string name = "events";  ///< name shown to the publisher
  std::string provider = "auto";
  std::string secret_file = {};
  bool monitor = true;  ///< true: the subscriber loses fragments rather than delay the readout
};

/// One thread.
class EventSubscriber {
 public:
  /// Errors: readout.no_stream (no stream of this name, or no stream at all), readout.which_stream, transport.bus,
  /// transport.secret_file.
  static Result<EventSubscriber> subscribe(const EventSubscriberSettings& settings);

  EventSubscriber(EventSubscriber&&) = default;
  /// Leaves in order: the publisher does not wait for it to come back.
  ~EventSubscriber();

  using Outcome = SampleClient::Outcome;
  /// Like SampleClient::next(); Sample::sequence is the global id of the event. If the connection to the publisher breaks,
  /// next() looks for the publisher again. An error is the reason with which a publisher refuses.
  Result<Outcome> next(Sample& sample, std::chrono::milliseconds patience);

  /// Asks for the data in transit, then for the end.
  void leave() { stream_->stop(); }

  const std::string& stream() const { return name_; }
  /// Number of fragments that the publisher had for this subscriber and that arrived incomplete or not at all.
  std::uint64_t lost() const;

 private:
  EventSubscriber(std::string name, std::unique_ptr<input::NetworkStream> stream);
  bool append_chunk(const ChunkRun& run, Sample& sample);

  std::string name_;
  std::unique_ptr<input::NetworkStream> stream_;
  Page* page_ = nullptr;
  std::size_t run_ = 0;          // position within the page
  std::uint32_t chunk_ = 0;      // position within the run
  std::vector<std::byte> part_;  // the first part of an incomplete fragment
  std::uint64_t reported_lost_ = 0;
  bool cut_at_end_ = false;
};

}  // namespace rodeo::readout
