// The router: makes the input of its settings, publishes its links, and ends everything in order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/registry.h"
#include "router/front_end/server.h"
#include "router/reader.h"
#include "router/router_status.h"
#include "router/settings.h"

namespace rodeo::router {

/// One run of one router process. One thread calls all functions.
///
///   Router router(settings, registry);     // throws SetupError
///   router.start();
///   while (router.phase() != Phase::stopped) { router.step(); sleep(10ms); }
class Router {
 public:
  /// Makes the input and its readers, which enter themselves on the bus. Throws SetupError if the input is unknown or fails,
  /// has no links, or has links for another number of readers, and if a secret is missing or a name is taken.
  Router(RouterSettings settings, const base::ComponentRegistry& registry);

  /// Stops the run if it is still active, and waits for its end.
  ~Router();

  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  /// Starts the readers, and the input unless it waits for subscribers. If this fails, stops what was started and throws
  /// SetupError.
  void start();

  /// Advances the run: start of the input, its failure, the end. Call it ten to a hundred times a second. It returns soon.
  void step();

  /// Tells the input to stop; step() does the rest. Repeated calls are harmless.
  void stop();
  /// True after stop().
  bool stopping() const { return stopping_; }
  /// After stop(): gives up chunks that subscribers have not taken, and counts them.
  void give_up();

  Phase phase() const { return phase_; }
  RouterStatus status() const;

  /// Returns the messages for the user since the last call.
  std::vector<std::string> take_messages();

  const RouterSettings& settings() const { return settings_; }

 private:
  void make_readers();
  void make_front_ends();
  void start_input();
  void join();

  RouterSettings settings_;
  // The destructor goes from the last to the first: readers use the input's streams.
  std::unique_ptr<DataInput> input_;
  std::vector<std::unique_ptr<Reader>> readers_;
  std::unique_ptr<FrontEndServer> front_ends_;
  bool stopping_ = false;
  Phase phase_ = Phase::prepared;
  bool waiting_ = false;
  std::uint64_t start_ns_ = 0;  ///< start of the input; 0: not started
  std::uint64_t end_ns_ = 0;    ///< end of the data flow; 0: data flow
  std::string failure_;
  RouterStatus previous_;
  std::vector<std::string> messages_;
};

}  // namespace rodeo::router
