// Readers beside their card: the CPUs of a card's NUMA node, and threads that stay on them. numa.cpp alone includes hwloc.
#pragma once

#include <sched.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace rodeo::card {

/// Where the readers of a card run.
struct ReaderPlace {
  std::vector<unsigned> cpus = {};  ///< of the node, and allowed to this process; empty: readers stay free
  int node = -1;                    ///< that memory for the card shall lie on; -1: any
  std::string description = {};     ///< "on NUMA node 1 (CPUs 8-15)", or "free: ..." and why; for logs and reports
};

/// What a machine looks like, in place of the one that this runs on: for tests.
struct SyntheticMachine {
  std::string topology;           ///< hwloc's synthetic description: "node:2 core:4 pu:1"
  std::vector<unsigned> allowed;  ///< CPUs that the process may use
};

/// `wanted` is "card" (the node that the card hangs on, `card_node` from sysfs; -1: not known), "off", or a node's number. With "card" a machine of
/// one node, a card of no node, and a node without CPUs that may be used leave readers free. Error card.bad_numa: another word, or a number that
/// no node has.
Result<ReaderPlace> reader_place(std::string_view wanted, int card_node,
                                 const std::optional<SyntheticMachine>& machine = {});

/// Keeps the calling thread on the place's CPUs while it lives, and gives it back its own then, if it ends on the same thread. A thread that somebody
/// has pinned already - its CPUs are not those of the process's first thread - is left alone.
class StayAtCard {
 public:
  explicit StayAtCard(const ReaderPlace& place);
  ~StayAtCard();
  StayAtCard(const StayAtCard&) = delete;
  StayAtCard& operator=(const StayAtCard&) = delete;

  bool stays() const { return before_.has_value(); }
  /// False on another thread than the one that stays: ending it there would leave that one where it is.
  bool may_end_here() const;

 private:
  std::optional<cpu_set_t> before_;
  int thread_ = 0;
};

/// The same for good: for threads that do nothing else. False if it was left alone.
bool stay_at_card(const ReaderPlace& place);

}  // namespace rodeo::card
