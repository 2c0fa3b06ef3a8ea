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

/// One run of one router process. All functions are called by one thread.
///
///   Router router(settings, registry);     // throws SetupError
///   router.start();
///   while (router.phase() != Phase::stopped) { router.step(); sleep(10ms); }
class Router {
 public:
  /// Makes the input and its readers, which enter themselves on the bus. Throws SetupError: unknown input, no links,
  /// impossible number of readers, no secret, a name that is taken, or an error of the input.
  Router(RouterSettings settings, const base::ComponentRegistry& registry);

  /// Stops the run if it is still active, and waits for its end.
  ~Router();

  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  /// Starts the readers, and the input unless it waits for subscribers. Throws SetupError; then everything started is
  /// stopped again.
  void start();

  /// Advances the run: start of the input, its failure, the end. Call it ten to a hundred times a second. Does not block for
  /// long.
  void step();

  /// Tells the input to stop; step() does the rest. Repeated calls are harmless.
  void stop();
  /// stop() was called.
  bool stopping() const { return stopping_; }
  /// After stop(): gives up chunks that subscribers have not taken, and counts them.
  void give_up();

  Phase phase() const { return phase_; }
  RouterStatus status() const;

  /// Messages for the user since the last call.
  std::vector<std::string> take_messages();

  const RouterSettings& settings() const { return settings_; }

 private:
  void make_readers();
  void make_front_ends();
  void start_input();
  void join();

  RouterSettings settings_;
  // Destroyed in reverse order: readers use the input's streams.
  std::unique_ptr<DataInput> input_;
  std::vector<std::unique_ptr<Reader>> readers_;
  std::unique_ptr<FrontEndServer> front_ends_;
  bool stopping_ = false;
  Phase phase_ = Phase::prepared;
  bool waiting_ = false;
  std::uint64_t start_ns_ = 0;  ///< of the input; 0: not started
  std::uint64_t end_ns_ = 0;    ///< of the data flow; 0: still flowing
  std::string failure_;
  RouterStatus previous_;
  std::vector<std::string> messages_;
};

}  // namespace rodeo::router
