// FragmentBuilder: aggregates chunks into event fragments (software ROD paper, sections VI.B and VIII).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rodeo/consumer.h"
#include "rodeo/input.h"
#include "rodeo/trigger.h"

namespace rodeo {

/// A link in the form that a builder needs.
struct BuilderLink {
  Fid fid;
  std::uint32_t link_id = 0;  ///< detector resource id, for chunk headers
  std::uint32_t group = 0;    ///< data channel; FULL mode: links of one group carry its events in turn
};

/// Surroundings of a builder, from the application. The objects behind pointers outlive the builder.
struct BuilderContext {
  SourceId source_id;
  std::span<const BuilderLink> links;
  DataInput* input = nullptr;
  FragmentConsumer* consumer = nullptr;                               ///< the first consumer of the list
  std::function<std::unique_ptr<TriggerExtractor>()> make_extractor;  ///< called once per worker
  std::function<std::unique_ptr<IntegrityChecker>()> make_checker;    ///< empty: no check
  std::string extractor_name = {};  ///< name of the extractor and of its plug-in, for messages
  std::string checker_name = {};
};

enum class LinkState : std::uint8_t { active, removed };

/// Builds the fragments of one ROB. The application's thread calls all functions, unless stated otherwise.
class FragmentBuilder {
 public:
  virtual ~FragmentBuilder() = default;

  /// Starts the worker threads. The streams of the input are open since construction.
  virtual void start() = 0;

  /// Waits until every stream has ended and every open event is built and pushed, then ends the workers; also after a
  /// start() that threw.
  virtual void join() = 0;

  /// Ends the run now: workers stop waiting, further input is counted but not built, and join() returns soon. Only a builder
  /// that may wait without limit needs this function. Another thread calls it while join() waits.
  virtual void give_up() {}

  /// Removes a link from the build or restores it; takes effect between two pages. False if the link is not one of this
  /// builder.
  virtual bool set_link(Fid fid, LinkState state) = 0;

  struct Link {
    Fid fid;
    LinkState state = LinkState::active;
    bool removed_by_policy = false;
    std::uint64_t chunks = 0;    ///< received chunks
    std::uint64_t missing = 0;   ///< events closed without a chunk of the link
    std::uint64_t left_out = 0;  ///< events built without the link because it was removed
    std::uint64_t bad = 0;       ///< chunks that were corrupt, or lost for a reason of this link
  };

  /// A thread that builds. The watchdog reports it if it waits for long without progress.
  struct Worker {
    std::string name;
    std::string waits_for;       ///< continues the sentence "waits for ..."; empty: it works; "data": the input is drained
    std::uint64_t progress = 0;  ///< changes whenever something is read, built or lost
  };

  /// Values for the live view and the report; read while the workers run.
  struct Status {
    std::uint64_t fragments = 0;
    std::uint64_t incomplete = 0;
    std::uint64_t events = 0;   ///< all known events: in fragments, or skipped
    std::uint64_t skipped = 0;  ///< known events in no fragment: all links (of a group) skipped their numbers
    std::uint64_t first_event = ~std::uint64_t{0};  ///< global id; all ones: unknown
    std::uint64_t without_removed = 0;              ///< fragments, complete or not, that lack removed links
    std::uint64_t chunks_received = 0;
    std::uint64_t chunks_built = 0;
    std::uint64_t payload_bytes = 0;
    std::vector<NamedCounter> lost;                  ///< chunks in no fragment, by reason; received = built + their sum
    std::vector<NamedCounter> incomplete_by_reason;  ///< incomplete fragments, by reason
    std::uint64_t open_events = 0;
    std::uint64_t window_events = 0;
    double pool_fill = 0;  ///< slice buffers in use, 0 to 1
    bool held_by_consumer = false;
    double cpu_seconds = 0;  ///< CPU time of the workers
    std::vector<Link> links;
    std::vector<Worker> workers;
  };
  virtual Status status() const = 0;
};

}  // namespace rodeo
