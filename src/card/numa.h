// Keeps reader threads on the CPUs of their card's NUMA node. Only numa.cpp includes hwloc.
#pragma once

#include <sched.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace rodeo::card {

/// The place where the readers of a card run.
struct ReaderPlace {
  std::vector<unsigned> cpus = {};  ///< CPUs of the node that this process may use; empty: readers stay free
  int node = -1;                    ///< node for the card's memory; -1: any
  std::string description = {};     ///< "on NUMA node 1 (CPUs 8-15)", or "free: ..." and why; for logs and reports
};

/// A machine for tests, in place of the real one.
struct SyntheticMachine {
  std::string topology;           ///< hwloc's synthetic description: "node:2 core:4 pu:1"
  std::vector<unsigned> allowed;  ///< CPUs that the process may use
};

/// `wanted` is "card" (the card's node: `card_node` from sysfs, -1 if not known), "off", or a node's number. With "card",
/// readers stay free on a machine with one node and for a card without a node. They also stay free if the process may use no
/// CPU of the node. Error card.bad_numa: another word, or a number that no node has.
Result<ReaderPlace> reader_place(std::string_view wanted, int card_node,
                                 const std::optional<SyntheticMachine>& machine = {});

/// Keeps the calling thread on the place's CPUs while the object lives. If the same thread destroys the object, it gets its
/// own CPUs back. A thread that is pinned already (its CPUs are not those of the process's first thread) is left alone.
class StayAtCard {
 public:
  explicit StayAtCard(const ReaderPlace& place);
  ~StayAtCard();
  StayAtCard(const StayAtCard&) = delete;
  StayAtCard& operator=(const StayAtCard&) = delete;

  bool stays() const { return before_.has_value(); }
  /// False on any thread but the pinned one: destroying the object there would leave the thread pinned.
  bool may_end_here() const;

 private:
  std::optional<cpu_set_t> before_;
  int thread_ = 0;
};

/// Pins the calling thread for good; for threads that only read. False if it was left alone.
bool stay_at_card(const ReaderPlace& place);

}  // namespace rodeo::card
