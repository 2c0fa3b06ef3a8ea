// The receiving end of the consumer `publish`: the fragments of a readout, from the network (docs/formats/fragment-stream.md).
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
  std::string stream = {};      ///< as the bus has it; empty: the only one there is
  std::string name = "events";  ///< as the publisher shows it
  std::string provider = "auto";
  std::string secret_file = {};
  bool monitor = true;  ///< loses fragments rather than hold up the readout
};

/// One thread.
class EventSubscriber {
 public:
  /// Errors readout.no_stream (none of this name, or none at all, is on the bus), readout.which_stream, transport.bus, transport.secret_file.
  static Result<EventSubscriber> subscribe(const EventSubscriberSettings& settings);

  EventSubscriber(EventSubscriber&&) = default;
  /// Leaves in order: nobody waits for it to come back.
  ~EventSubscriber();

  using Outcome = SampleClient::Outcome;
  /// As SampleClient's; Sample::sequence is the global id of the event. A publisher that goes without a word is looked for. An error is what a publisher
  /// says who refuses.
  Result<Outcome> next(Sample& sample, std::chrono::milliseconds patience);

  /// Asks for what is under way, then for the end.
  void leave() { stream_->stop(); }

  const std::string& stream() const { return name_; }
  /// Fragments that the publisher had for us and that did not come, or not whole.
  std::uint64_t lost() const;

 private:
  EventSubscriber(std::string name, std::unique_ptr<input::NetworkStream> stream);
  bool take(const ChunkRun& run, Sample& sample);

  std::string name_;
  std::unique_ptr<input::NetworkStream> stream_;
  Page* page_ = nullptr;
  std::size_t run_ = 0;          // of the page
  std::uint32_t chunk_ = 0;      // of the run
  std::vector<std::byte> part_;  // of a fragment of which more follows
  std::uint64_t lost_told_ = 0;
  bool cut_at_end_ = false;
};

}  // namespace rodeo::readout
