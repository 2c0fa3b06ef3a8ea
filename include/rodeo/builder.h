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

/// A link as the builder sees it.
struct BuilderLink {
  Fid fid;
  std::uint32_t link_id = 0;  ///< detector resource id, for chunk headers
  std::uint32_t group = 0;    ///< data channel; FULL mode: links of one group carry its events in turn
};

/// What the application gives a builder. Pointers outlive the builder.
struct BuilderContext {
  SourceId source_id;
  std::span<const BuilderLink> links;
  DataInput* input = nullptr;
  FragmentConsumer* consumer = nullptr;                               ///< the first of the list
  std::function<std::unique_ptr<TriggerExtractor>()> make_extractor;  ///< called once per worker
  std::function<std::unique_ptr<IntegrityChecker>()> make_checker;    ///< empty: no check
  std::string extractor_name = {};                                    ///< for messages, with its plug-in
  std::string checker_name = {};
};

enum class LinkState : std::uint8_t { active, removed };

/// Builds the fragments of one ROB. All functions are called by the application's thread unless they say otherwise.
class FragmentBuilder {
 public:
  virtual ~FragmentBuilder() = default;

  /// Starts the worker threads. Streams of the input are open since construction.
  virtual void start() = 0;

  /// Waits until every stream has ended and every open event is built and pushed, then ends the workers; also those of a start() that threw.
  virtual void join() = 0;

  /// The run has to end now: workers wait for nothing any more, what the input still brings is counted and not built, and join() returns soon.
  /// For one that can wait for ever. While join() waits, by another thread.
  virtual void give_up() {}

  /// Removes a link from the build or takes it back; takes effect between two pages. False if the link is not ours.
  virtual bool set_link(Fid fid, LinkState state) = 0;

  struct Link {
    Fid fid;
    LinkState state = LinkState::active;
    bool removed_by_policy = false;
    std::uint64_t chunks = 0;    ///< received
    std::uint64_t missing = 0;   ///< events closed without it
    std::uint64_t left_out = 0;  ///< events built without it because it was removed
    std::uint64_t bad = 0;       ///< corrupt, or lost for a reason of its own
  };

  /// A thread that builds. One that waits for long, and makes no progress meanwhile, is told to the crew.
  struct Worker {
    std::string name;
    std::string waits_for;       ///< as a sentence goes on after "waits for"; empty: it works; "data": the input is drained
    std::uint64_t progress = 0;  ///< changes whenever something is read, built or lost
  };

  /// For the live view and the report; read while the workers run.
  struct Status {
    std::uint64_t fragments = 0;
    std::uint64_t incomplete = 0;
    std::uint64_t events = 0;   ///< known to have been: in fragments, or skipped
    std::uint64_t skipped = 0;  ///< of these, in no fragment: their numbers were left out by all links (of a group)
    std::uint64_t first_event = ~std::uint64_t{0};  ///< global id; all ones: not known
    std::uint64_t without_removed = 0;              ///< fragments, complete or not, that lack links which were removed
    std::uint64_t chunks_received = 0;
    std::uint64_t chunks_built = 0;
    std::uint64_t payload_bytes = 0;
    std::vector<NamedCounter> lost;                  ///< chunks in no fragment, by reason; received = built + their sum
    std::vector<NamedCounter> incomplete_by_reason;  ///< fragments
    std::uint64_t open_events = 0;
    std::uint64_t window_events = 0;
    double pool_fill = 0;  ///< slice buffers in use, 0 to 1
    bool held_by_consumer = false;
    double cpu_seconds = 0;  ///< of the workers
    std::vector<Link> links;
    std::vector<Worker> workers;
  };
  virtual Status status() const = 0;
};

}  // namespace rodeo
