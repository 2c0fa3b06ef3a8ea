// The router: makes the input that its settings name, publishes its links, and lets all of it go in order.
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
  /// Makes the input and its readers, which are on the bus from now on. Throws SetupError: no such input, no links, readers that cannot be, no
  /// secret, a name that is taken, or what the input says.
  Router(RouterSettings settings, const base::ComponentRegistry& registry);

  /// Stops the run if it is still going, and waits for it.
  ~Router();

  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  /// Starts the readers, and the input unless it waits for subscribers. Throws SetupError; what was started is stopped again.
  void start();

  /// Moves the run on: the input's beginning, its failure, the end. Ten to a hundred times a second. Does not block for long.
  void step();

  /// Tells the input to stop; step() does the rest. Again is no error.
  void stop();
  /// stop() was called.
  bool stopping() const { return stopping_; }
  /// After stop(): what subscribers have not taken is given up, and counted.
  void give_up();

  Phase phase() const { return phase_; }
  RouterStatus status() const;

  /// What happened since the last call that a user wants to read.
  std::vector<std::string> take_messages();

  const RouterSettings& settings() const { return settings_; }

 private:
  void make_readers();
  void make_front_ends();
  void start_input();
  void join();

  RouterSettings settings_;
  // Destroyed last to first: readers hold the input's streams.
  std::unique_ptr<DataInput> input_;
  std::vector<std::unique_ptr<Reader>> readers_;
  std::unique_ptr<FrontEndServer> front_ends_;
  bool stopping_ = false;
  Phase phase_ = Phase::prepared;
  bool waiting_ = false;
  std::uint64_t start_ns_ = 0;  ///< of the input; 0: not started
  std::uint64_t end_ns_ = 0;    ///< of the flow; 0: it goes on
  std::string failure_;
  RouterStatus previous_;
  std::vector<std::string> messages_;
};

}  // namespace rodeo::router
